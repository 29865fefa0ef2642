#pragma once

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "bench/load/transport.h"

namespace lockstep::bench {

// A server that takes one request at a time, in order, and a clock that only
// goes on while somebody waits. For tests: no time passes.
class FakeTransport : public Transport {
 public:
  double first_token_s = 0.1;
  double token_s = 0.01;
  // The server does nothing in between.
  double stall_from_s = -1;
  double stall_to_s = -1;
  // Of the requests by number, from 0.
  std::map<int, absl::Status> failures;

  std::vector<Prompt> prompts;

  void Start(const Prompt& prompt, Listener* listener) override {
    const int number = static_cast<int>(prompts.size());
    prompts.push_back(prompt);
    if (failures.contains(number)) {
      Then(NowS(), {.listener = listener, .status = failures[number]});
      return;
    }
    double at_s = std::max(NowS(), free_s_) + first_token_s;
    for (int i = 0; i < prompt.output_tokens; ++i, at_s += token_s) {
      if (at_s > stall_from_s && at_s < stall_to_s) at_s = stall_to_s;
      Then(at_s, {.listener = listener, .id = static_cast<uint32_t>(i)});
      free_s_ = at_s;
    }
    Then(free_s_, {.listener = listener, .is_last = true});
  }

  void HandleOne(Clock::time_point deadline) override {
    if (events_.empty() || events_.begin()->first > deadline) {
      now_ = std::max(now_, deadline);
      return;
    }
    const auto [at, event] = *events_.begin();
    events_.erase(events_.begin());
    now_ = std::max(now_, at);
    if (event.status.ok() && !event.is_last) {
      event.listener->OnTokens({&event.id, 1});
    } else {
      event.listener->OnEnd(event.status);
    }
  }

  Clock::time_point Now() const override { return now_; }

 private:
  struct Event {
    Listener* listener = nullptr;
    uint32_t id = 0;
    bool is_last = false;
    absl::Status status = {};
  };

  double NowS() const {
    return std::chrono::duration<double>(now_ - Clock::time_point()).count();
  }

  void Then(double at_s, Event event) {
    const auto at =
        Clock::time_point() + std::chrono::duration_cast<Clock::duration>(
                                  std::chrono::duration<double>(at_s));
    events_.emplace(at, std::move(event));
  }

  Clock::time_point now_;
  double free_s_ = 0;
  std::multimap<Clock::time_point, Event> events_;
};

}  // namespace lockstep::bench
