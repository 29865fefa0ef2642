#include "tests/simulation/routing/routing_run.h"

#include <absl/time/time.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <memory>
#include <numeric>
#include <unordered_map>
#include <utility>
#include <vector>

#include "common/status_macros.h"
#include "frontend/routing/balancer.h"
#include "frontend/routing/policy/make_policy.h"
#include "frontend/routing/policy/page_chain.h"
#include "tests/simulation/routing/sessions.h"

namespace lockstep::testing {
namespace {

class RoutingRun {
 public:
  RoutingRun(const RoutingRunOptions& options,
             std::vector<std::unique_ptr<Balancer>> gateways)
      : options_(options),
        gateways_(std::move(gateways)),
        steps_(options.groups, false),
        sessions_(options.seed) {
    for (int i = 0; i < options.groups; ++i) {
      groups_.emplace_back(options.model);
    }
    for (const auto& gateway : gateways_) {
      for (int i = 0; i < options.groups; ++i) {
        gateway->AddGroup(i + 1, "group " + std::to_string(i));
        gateway->OnNewGroup(i + 1, options.model.kv_capacity_tokens);
      }
    }
    candidates_.resize(options.groups);
    std::iota(candidates_.begin(), candidates_.end(), 1);
  }

  RoutingResult Run() {
    At(0, [this] { BeginDialogues(); });
    for (int i = 0; i < options_.groups; ++i) {
      At(options_.report_interval_s * i / options_.groups,
         [this, i] { Report(i); });
    }
    while (num_ended_ < options_.requests && !events_.empty()) {
      std::pop_heap(events_.begin(), events_.end());
      Event event = std::move(events_.back());
      events_.pop_back();
      now_s_ = event.time_s;
      event.call();
    }
    return Result();
  }

 private:
  struct Event {
    double time_s;
    uint64_t number;
    std::function<void()> call;

    bool operator<(const Event& other) const {
      return std::pair(time_s, number) > std::pair(other.time_s, other.number);
    }
  };
  struct Live {
    Session session;
    Balancer* gateway;
    Balancer::Share share;
  };

  void At(double time_s, std::function<void()> call) {
    events_.push_back({time_s, ++num_events_, std::move(call)});
    std::push_heap(events_.begin(), events_.end());
  }
  absl::Time Now() const { return absl::UnixEpoch() + absl::Seconds(now_s_); }

  void BeginDialogues() {
    Send(sessions_.Begin());
    At(now_s_ + sessions_.Exponential(1 / options_.dialogues_per_s),
       [this] { BeginDialogues(); });
  }

  void Send(Session session) {
    const uint64_t id = ++num_sent_;
    Balancer* const gateway = gateways_[id % gateways_.size()].get();
    const std::vector<uint32_t> prompt = PromptOf(session);
    Balancer::Share share =
        gateway->Pick({.prompt_token_ids = prompt}, 1, candidates_, Now());
    gateway->OnAccepted(&share);
    auto request = std::make_unique<SimulatedRequest>();
    request->id = id;
    request->arrived_s = now_s_;
    request->chain = HashPages(prompt);
    request->prompt_tokens = prompt.size();
    request->output_tokens = session.output_tokens;
    const int group = static_cast<int>(share.group) - 1;
    live_.emplace(id, Live{std::move(session), gateway, share});
    groups_[group].Add(std::move(request));
    if (!steps_[group]) Step(group);
  }

  void Step(int group) {
    steps_[group] = !groups_[group].is_idle();
    if (!steps_[group]) return;
    SimulatedGroup::Outcome outcome = groups_[group].Step(now_s_);
    const double end_s = now_s_ + outcome.took_s;
    At(end_s, [this, group, outcome = std::move(outcome)] {
      for (const uint64_t id : outcome.first_tokens) {
        Live& live = live_.at(id);
        live.gateway->OnToken(&live.share, Now());
      }
      for (const SimulatedGroup::Ended& ended : outcome.ended) {
        Note(ended);
        End(ended.id);
      }
      Step(group);
    });
  }

  void Note(const SimulatedGroup::Ended& ended) {
    prompt_tokens_ += ended.prompt_tokens;
    cached_tokens_ += ended.cached_tokens;
    ttfts_s_.push_back(static_cast<float>(ended.ttft_s));
  }

  void End(uint64_t id) {
    ++num_ended_;
    Live& live = live_.at(id);
    live.gateway->OnEnd(live.share);
    if (live.session.turns_left > 0) {
      sessions_.GoOn(&live.session);
      At(now_s_ + sessions_.Exponential(options_.think_s),
         [this, session = std::move(live.session)]() mutable {
           Send(std::move(session));
         });
    }
    live_.erase(id);
  }

  void Report(int group) {
    const GroupLoad load = groups_[group].load();
    for (const auto& gateway : gateways_) {
      gateway->OnLoad(group + 1, load, Now());
    }
    At(now_s_ + options_.report_interval_s, [this, group] { Report(group); });
  }

  double Quantile(double part) {
    const size_t at = static_cast<size_t>(part * (ttfts_s_.size() - 1));
    std::nth_element(ttfts_s_.begin(), ttfts_s_.begin() + at, ttfts_s_.end());
    return ttfts_s_[at];
  }

  RoutingResult Result() {
    double sum = 0;
    double most = 0;
    for (const SimulatedGroup& group : groups_) {
      sum += group.sequence_seconds() / now_s_;
      most = std::max(most, group.sequence_seconds() / now_s_);
    }
    return {.hit_rate = static_cast<double>(cached_tokens_) /
                        static_cast<double>(prompt_tokens_),
            .sequences = sum / options_.groups,
            .max_sequences = most,
            .ttft_p50_s = Quantile(0.5),
            .ttft_p99_s = Quantile(0.99)};
  }

  const RoutingRunOptions options_;
  const std::vector<std::unique_ptr<Balancer>> gateways_;
  std::deque<SimulatedGroup> groups_;
  std::vector<bool> steps_;  // whether a group is within a step
  std::vector<GroupId> candidates_;
  Sessions sessions_;
  std::vector<Event> events_;  // a heap, the next one first
  std::unordered_map<uint64_t, Live> live_;
  double now_s_ = 0;
  uint64_t num_events_ = 0;
  uint64_t num_sent_ = 0;
  int64_t num_ended_ = 0;
  int64_t prompt_tokens_ = 0;
  int64_t cached_tokens_ = 0;
  std::vector<float> ttfts_s_;
};

}  // namespace

absl::StatusOr<RoutingResult> RunRouting(const RoutingRunOptions& options) {
  std::vector<std::unique_ptr<Balancer>> gateways;
  for (int i = 0; i < options.gateways; ++i) {
    LOCKSTEP_ASSIGN_OR_RETURN(auto policy, MakeRoutingPolicy(options.policy));
    gateways.push_back(
        std::make_unique<Balancer>(std::move(policy), Balancer::Options()));
  }
  return RoutingRun(options, std::move(gateways)).Run();
}

}  // namespace lockstep::testing
