#include "frontend/routing/group_set.h"

#include <absl/strings/str_cat.h>
#include <glog/logging.h>

#include <algorithm>
#include <utility>

#include "common/error_reason.h"

namespace lockstep {
namespace {

GroupLoad ToGroupLoad(const v1::Load& load) {
  const int64_t held =
      int64_t{load.total_pages()} - load.free_pages() - load.cached_pages();
  return {
      .waiting_tokens = load.waiting_tokens(),
      .sequences = int64_t{load.running_sequences()} + load.waiting_sequences(),
      .kv_usage = load.total_pages() == 0
                      ? 0
                      : static_cast<double>(held) / load.total_pages()};
}

}  // namespace

GroupSet::GroupSet(const GroupSetOptions& options,
                   std::unique_ptr<RoutingPolicy> policy)
    : options_(options),
      balancer_(std::move(policy), options.balancer),
      budget_(options.retry_budget) {}

void GroupSet::Start(std::function<void()> on_change) {
  on_change_ = std::move(on_change);
  LookForSilence();
}

void GroupSet::SetAddresses(const std::vector<std::string>& addresses) {
  std::vector<std::string> known;
  {
    absl::MutexLock lock(&mutex_);
    for (const auto& [id, member] : members_) {
      known.push_back(member->client->address());
    }
  }
  const auto has = [](const std::vector<std::string>& list,
                      const std::string& address) {
    return std::find(list.begin(), list.end(), address) != list.end();
  };
  for (const std::string& address : addresses) {
    if (!has(known, address)) Add(address);
  }
  for (const std::string& address : known) {
    if (!has(addresses, address)) Remove(address);
  }
}

void GroupSet::Add(const std::string& address) {
  auto owned = std::make_unique<Member>(address, options_.tls);
  Member* const member = owned.get();
  GroupId id = 0;
  {
    absl::MutexLock lock(&mutex_);
    id = ++last_id_;
    balancer_.AddGroup(id, address);
    members_.emplace(id, std::move(owned));
    member->monitor = std::make_unique<WorkerMonitor>(member->client.get(),
                                                      options_.tokenizer);
    member->load = std::make_unique<LoadWatch>(
        member->client.get(),
        [this, id](const v1::Load& load) { OnLoad(id, load); });
  }
  member->monitor->Start(
      [this, id, member] { OnMonitorChange(id, *member->monitor); });
  member->load->Start();
}

void GroupSet::Remove(const std::string& address) {
  LOG(INFO) << "the worker at " << address << " gets no more requests";
  std::unique_ptr<Member> removed;
  bool turned = false;
  {
    absl::MutexLock lock(&mutex_);
    const auto found =
        std::find_if(members_.begin(), members_.end(), [&](const auto& entry) {
          return entry.second->client->address() == address;
        });
    balancer_.RemoveGroup(found->first);
    removed = std::move(found->second);
    members_.erase(found);
    turned = ChooseServed();
  }
  removed->load->Stop();
  removed->monitor->Stop();
  if (turned) TellChange();
}

void GroupSet::TellChange() {
  absl::MutexLock lock(&change_mutex_);
  if (!is_stopped_) on_change_();
}

void GroupSet::Stop() {
  {
    absl::MutexLock lock(&change_mutex_);
    is_stopped_ = true;
  }
  std::vector<Member*> members;
  {
    absl::MutexLock lock(&mutex_);
    for (const auto& [id, member] : members_) members.push_back(member.get());
  }
  for (Member* member : members) {
    member->load->Stop();
    member->monitor->Stop();
  }
}

void GroupSet::OnMonitorChange(GroupId id, const WorkerMonitor& monitor) {
  const auto model = monitor.Model();
  bool turned = false;
  {
    absl::MutexLock lock(&mutex_);
    const auto found = members_.find(id);
    if (found == members_.end()) return;
    Member& member = *found->second;
    member.model =
        model.ok() ? std::make_shared<const ServedModel>(*model) : nullptr;
    member.is_silent = false;
    // Whoever has reported before has some time to do so again.
    member.reported_at = std::max(member.reported_at, RoutingNow());
    if (model.ok()) balancer_.OnNewGroup(id, model->kv_capacity_tokens);
    turned = ChooseServed();
    WarnIfOther(member);
  }
  if (model.ok()) waits_.EndAll();
  if (turned) TellChange();
}

bool GroupSet::ChooseServed() {
  const ServedModel* first = nullptr;  // of those ready, best with the old name
  for (const auto& [id, member] : members_) {
    if (!member->is_ready()) continue;
    const bool has_name =
        served_.has_value() && member->model->name == served_->name;
    if (first == nullptr || (has_name && first->name != served_->name)) {
      first = member->model.get();
    }
  }
  const bool was_ready = served_.has_value();
  if (first == nullptr) {
    served_ = std::nullopt;
    return was_ready;
  }
  ServedModel served = *first;
  for (const auto& [id, member] : members_) {
    if (!member->is_ready() || member->model->name != served.name) continue;
    served.max_context_tokens =
        std::min(served.max_context_tokens, member->model->max_context_tokens);
    served.vocabulary_size =
        std::min(served.vocabulary_size, member->model->vocabulary_size);
  }
  served_ = std::move(served);
  return !was_ready;
}

void GroupSet::WarnIfOther(const Member& member) const {
  if (member.model == nullptr || !served_.has_value()) return;
  const std::string& address = member.client->address();
  if (member.model->name != served_->name) {
    LOG(WARNING) << "the worker at " << address << " serves "
                 << member.model->name << " and others " << served_->name
                 << ": it gets no requests";
    return;
  }
  for (const auto& [id, other] : members_) {
    if (other.get() == &member || other->model == nullptr ||
        other->model->name != served_->name ||
        GiveTheSameBits(*member.model, *other->model)) {
      continue;
    }
    LOG(WARNING) << "the workers at " << address << " and "
                 << other->client->address()
                 << " differ in fingerprint, version or context: neither goes "
                    "on with the other's answers";
    return;
  }
}

void GroupSet::OnLoad(GroupId id, const v1::Load& load) {
  const absl::Time now = RoutingNow();
  bool is_back = false, turned = false;
  {
    absl::MutexLock lock(&mutex_);
    balancer_.OnLoad(id, ToGroupLoad(load), now);
    const auto found = members_.find(id);
    if (found == members_.end()) return;
    Member& member = *found->second;
    member.reported_at = now;
    is_back = std::exchange(member.is_silent, false);
    if (is_back) turned = ChooseServed();
  }
  if (is_back) waits_.EndAll();
  if (turned) TellChange();
}

void GroupSet::LookForSilence() {
  if (is_stopped_) return;
  const absl::Time now = RoutingNow();
  std::vector<std::string> silent;
  bool turned = false;
  {
    absl::MutexLock lock(&mutex_);
    // It was stopped itself, and has heard nobody.
    const bool was_stopped = now - looked_at_ >= options_.unready_after / 2;
    looked_at_ = now;
    for (const auto& [id, member] : members_) {
      if (was_stopped) member->reported_at = std::max(member->reported_at, now);
      const bool is_silent =
          now - member->reported_at >= options_.unready_after;
      if (!is_silent || !member->is_ready()) continue;
      member->is_silent = true;
      silent.push_back(member->client->address());
      turned |= ChooseServed();
    }
  }
  for (const std::string& address : silent) {
    LOG(WARNING) << "the worker at " << address << " has not said its load for "
                 << absl::FormatDuration(options_.unready_after)
                 << ": it gets no new requests until it does";
  }
  timers_.At(ToTimerClock(now + options_.unready_after / 10),
             [this] { LookForSilence(); });
  if (turned) TellChange();
}

absl::StatusOr<ServedModel> GroupSet::Model() const {
  absl::MutexLock lock(&mutex_);
  if (served_.has_value()) return *served_;
  if (!why_no_waits_.ok()) return why_no_waits_;
  if (members_.empty()) {
    return MakeError(ErrorReason::kWorkerUnreachable,
                     "no worker is known yet.");
  }
  const auto first = members_.begin()->second->monitor->Model();
  if (first.ok() && members_.begin()->second->is_silent) {
    return absl::UnavailableError(absl::StrCat(
        "the worker at ", members_.begin()->second->client->address(),
        " has not said its load for ",
        absl::FormatDuration(options_.unready_after), "."));
  }
  // It became ready, and this is not told yet.
  if (first.ok()) return absl::UnavailableError("no worker is ready yet.");
  if (members_.size() == 1) return first.status();
  return WithMessage(first.status(), absl::StrCat("none of ", members_.size(),
                                                  " workers is ready: ",
                                                  first.status().message()));
}

bool GroupSet::Fits(const Member& member, const ServedModel* continues) const {
  return member.is_ready() && served_.has_value() &&
         member.model->name == served_->name &&
         (continues == nullptr || GiveTheSameBits(*member.model, *continues));
}

std::optional<GroupSet::Lease> GroupSet::Pick(const Wish& wish) {
  absl::MutexLock lock(&mutex_);
  std::vector<GroupId> candidates;
  for (const auto& [id, member] : members_) {
    const bool is_excluded =
        std::find(wish.excluded.begin(), wish.excluded.end(), member->model) !=
        wish.excluded.end();
    if (!is_excluded && Fits(*member, wish.continues)) candidates.push_back(id);
  }
  if (candidates.empty()) return std::nullopt;
  const Balancer::Share share =
      balancer_.Pick(wish.route, wish.sequences, candidates, RoutingNow());
  const Member& member = *members_.at(share.group);
  return Lease(this, member.client, member.model, share);
}

bool GroupSet::HasGroup(const ServedModel* continues) const {
  absl::MutexLock lock(&mutex_);
  return std::any_of(members_.begin(), members_.end(),
                     [&](const auto& entry) ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
                       return Fits(*entry.second, continues);
                     });
}

uint64_t GroupSet::AwaitGroup(const ServedModel* continues, absl::Time until,
                              std::function<void()> call) {
  ++counters_.group_waits;
  const uint64_t id = waits_.Add(until, std::move(call));
  const bool may_wait = continues != nullptr || new_requests_wait();
  // Either may have turned just now.
  if (!may_wait || HasGroup(continues)) waits_.End(id);
  return id;
}

uint64_t GroupSet::AwaitModel(std::function<void()> call) {
  const absl::Duration wait =
      std::min(options_.retry.group_wait, options_.request_timeout);
  return AwaitGroup(/*continues=*/nullptr, RoutingNow() + wait,
                    std::move(call));
}

void GroupSet::EndWaits(const absl::Status& why) {
  {
    absl::MutexLock lock(&mutex_);
    why_no_waits_ = why;
  }
  waits_.EndAll();
}

bool GroupSet::new_requests_wait() const {
  absl::MutexLock lock(&mutex_);
  return why_no_waits_.ok();
}

int GroupSet::num_ready() const {
  absl::MutexLock lock(&mutex_);
  return static_cast<int>(std::count_if(
      members_.begin(), members_.end(),
      [](const auto& entry) { return entry.second->is_ready(); }));
}

std::vector<GroupSet::GroupStatus> GroupSet::statuses() const {
  const absl::Time now = RoutingNow();
  std::vector<GroupStatus> statuses;
  absl::MutexLock lock(&mutex_);
  for (const auto& [id, member] : members_) {
    statuses.push_back({.address = member->client->address(),
                        .is_ready = member->is_ready(),
                        .balance = balancer_.StatusOf(id, now)});
  }
  return statuses;
}

void GroupSet::OnRequest() {
  absl::MutexLock lock(&mutex_);
  budget_.OnRequest();
}

bool GroupSet::TakeRetry() {
  absl::MutexLock lock(&mutex_);
  return budget_.Take();
}

GroupSet::Lease::~Lease() {
  if (set_ == nullptr) return;
  absl::MutexLock lock(&set_->mutex_);
  set_->balancer_.OnEnd(share_);
}

void GroupSet::Lease::OnAccepted() {
  absl::MutexLock lock(&set_->mutex_);
  set_->balancer_.OnAccepted(&share_);
}

void GroupSet::Lease::OnToken() {
  absl::MutexLock lock(&set_->mutex_);
  set_->balancer_.OnToken(&share_, RoutingNow());
}

void GroupSet::Lease::OnFailure() {
  absl::MutexLock lock(&set_->mutex_);
  set_->balancer_.OnFailure(&share_, RoutingNow());
}

}  // namespace lockstep
