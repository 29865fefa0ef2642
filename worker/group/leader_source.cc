#include "worker/group/leader_source.h"

#include <absl/strings/str_cat.h>

#include <boost/asio/post.hpp>
#include <numeric>
#include <optional>
#include <utility>

#include "common/status_macros.h"
#include "common/time/steady_wait.h"
#include "worker/group/frame_codec.h"

namespace lockstep {
namespace {

constexpr absl::Duration kLastWordsTimeout = absl::Milliseconds(500);

std::vector<int> RanksAfterTheLeader(size_t count) {
  std::vector<int> ranks(count);
  std::iota(ranks.begin(), ranks.end(), 1);
  return ranks;
}

}  // namespace

LeaderSource::LeaderSource(Membership membership, RequestInbox* inbox,
                           GroupFailure* failure,
                           const PeerWatch::Options& watch,
                           const Link::Options& link,
                           std::function<void(int rank)> on_loaded)
    : epoch_(membership.epoch),
      inbox_(inbox),
      failure_(failure),
      on_loaded_(std::move(on_loaded)),
      io_(std::move(membership.io)),
      heartbeats_(RanksAfterTheLeader(membership.links.size())),
      watch_(/*own_rank=*/0, RanksAfterTheLeader(membership.links.size()),
             watch) {
  for (auto& socket : membership.links) {
    Follower& follower = *followers_.emplace_back(std::make_unique<Follower>());
    follower.rank = followers_.size();
    follower.link = std::make_unique<Link>(
        std::move(socket), link,
        [this, &follower](absl::string_view bytes) {
          OnBytes(follower, bytes);
        },
        [this, &follower](const absl::Status& why) {
          OnClosed(follower, why);
        });
  }
  if (followers_.empty()) return;
  for (const auto& follower : followers_) follower->link->Start();
  heartbeat_.emplace(io_->context(), watch.interval, [this] { Beat(); });
  heartbeat_->Start();
  io_->Start();
}

LeaderSource::~LeaderSource() {
  for (const auto& follower : followers_) {
    follower->link->WaitUntilSent(kLastWordsTimeout);
  }
  if (io_ != nullptr) io_->Stop();
}

absl::Status LeaderSource::Next(bool idle, Frame* frame) {
  frame->messages.clear();
  LOCKSTEP_RETURN_IF_ERROR(
      inbox_->Drain(idle, kMaxMessagesOfFrame, &frame->messages));
  frame->step = ++step_;
  if (told_failure_.load(std::memory_order_acquire)) return failure_->status();
  if (followers_.empty()) return absl::OkStatus();
  absl::MutexLock lock(&send_mutex_);
  if (told_failure_) return failure_->status();
  bytes_.clear();
  AppendFrame(epoch_, *frame, &bytes_);
  SendToAll();
  return absl::OkStatus();
}

absl::Status LeaderSource::Agree(const Digest& digest) {
  if (told_failure_.load(std::memory_order_acquire)) return failure_->status();
  if (followers_.empty()) return absl::OkStatus();
  absl::MutexLock lock(&send_mutex_);
  if (told_failure_) return failure_->status();
  bytes_.clear();
  AppendDigest(epoch_, step_, digest, &bytes_);
  SendToAll();
  return absl::OkStatus();
}

// A follower that can not take the bytes is reported by its I/O thread, which
// must not wait for send_mutex_: its report tells the others, under that lock.
void LeaderSource::SendToAll() {
  for (const auto& follower : followers_) {
    const absl::Status sent = follower->link->Send(bytes_);
    if (!absl::IsResourceExhausted(sent)) continue;
    boost::asio::post(io_->context(), [this, rank = follower->rank, sent] {
      failure_->Report({.rank = rank,
                        .kind = v1::TOO_FAR_BEHIND,
                        .reason = std::string(sent.message())});
    });
  }
}

void LeaderSource::TellFailure(const GroupFailure::Cause& cause) {
  {
    std::lock_guard lock(left_mutex_);
    has_failed_ = true;
  }
  left_changed_.notify_all();
  v1::FirstFailure failure;
  failure.set_rank(cause.rank);
  failure.set_kind(cause.kind);
  failure.set_reason(cause.reason);

  absl::MutexLock lock(&send_mutex_);
  if (told_failure_.exchange(true)) return;
  bytes_.clear();
  AppendFailure(epoch_, failure, &bytes_);
  SendToAll();
}

// A heartbeat that a follower has not read when it leaves would make its end
// look like a lost connection.
absl::Status LeaderSource::WaitForFollowers(absl::Duration timeout) {
  if (!followers_.empty()) {
    boost::asio::post(io_->context(), [this] { heartbeat_->Stop(); });
  }
  std::vector<int> missing;
  {
    std::unique_lock lock(left_mutex_);
    const auto have_ended = [&] {
      missing.clear();
      for (const auto& follower : followers_) {
        if (!left_.contains(follower->rank)) missing.push_back(follower->rank);
      }
      return missing.empty() || has_failed_;
    };
    WaitFor(left_changed_, lock, timeout, have_ended);
  }
  if (!missing.empty()) {
    // Does nothing where the failure is known.
    failure_->Report({.rank = missing.front(),
                      .kind = v1::TOO_FAR_BEHIND,
                      .reason = absl::StrCat("it did not leave within ",
                                             absl::FormatDuration(timeout),
                                             " of the stop.")});
  }
  return failure_->status();
}

// Takes no send_mutex_: a frame, a digest and a heartbeat are each one Send,
// and may come in any order.
void LeaderSource::Beat() {
  if (told_failure_) return heartbeat_->Stop();
  const v1::Heartbeat own = progress_.Read();
  heartbeat_bytes_.clear();
  AppendHeartbeat(epoch_, own, &heartbeat_bytes_);
  for (const auto& follower : followers_) {
    if (follower->has_left) continue;
    const absl::Status sent = follower->link->Send(heartbeat_bytes_);
    if (!absl::IsResourceExhausted(sent)) continue;
    return failure_->Report({.rank = follower->rank,
                             .kind = v1::TOO_FAR_BEHIND,
                             .reason = std::string(sent.message())});
  }
  if (auto cause = watch_.Beat(own)) failure_->Report(*std::move(cause));
}

void LeaderSource::OnBytes(Follower& follower, absl::string_view bytes) {
  watch_.Heard(follower.rank);
  follower.reports.Append(bytes);
  while (true) {
    const auto report = follower.reports.Next();
    if (!report.ok()) {
      return failure_->Report(
          {.rank = follower.rank,
           .kind = v1::PROTOCOL_VIOLATED,
           .reason = std::string(report.status().message())});
    }
    if (!report->has_value()) return;
    OnReport(follower, **report);
  }
}

void LeaderSource::OnReport(Follower& follower,
                            const v1::FollowerReport& report) {
  if (report.has_heartbeat()) {
    heartbeats_.Count(follower.rank);
    watch_.Heard(follower.rank, report.heartbeat());
    if (report.heartbeat().loaded() && on_loaded_) on_loaded_(follower.rank);
  } else if (report.has_failure() && IsWronglyMissedBy(report.failure())) {
    failure_->Report(
        {.rank = follower.rank,
         .kind = v1::CONNECTION_LOST,
         .reason = "nothing of the leader, which runs, reaches it."});
  } else if (report.has_failure()) {
    failure_->Report({.rank = static_cast<int>(report.failure().rank()),
                      .kind = report.failure().kind(),
                      .reason = report.failure().reason()});
  } else {
    follower.has_left = true;
    watch_.Forget(follower.rank);
    {
      std::lock_guard lock(left_mutex_);
      left_.insert(follower.rank);
    }
    left_changed_.notify_all();
  }
}

// What it sends does not arrive. A leader that was stopped agrees.
bool LeaderSource::IsWronglyMissedBy(const v1::FirstFailure& failure) const {
  return failure.rank() == 0 && failure.kind() == v1::SILENT &&
         !heartbeat_->WasLate(2 * watch_.timeout());
}

void LeaderSource::OnClosed(const Follower& follower, const absl::Status& why) {
  if (follower.has_left) return;
  failure_->Report({.rank = follower.rank,
                    .kind = v1::CONNECTION_LOST,
                    .reason = absl::StrCat(why.message(), ".")});
}

}  // namespace lockstep
