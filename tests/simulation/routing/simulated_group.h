#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <queue>
#include <utility>
#include <vector>

#include "frontend/routing/balancer.h"
#include "frontend/routing/policy/prefix_index.h"

namespace lockstep::testing {

// Of each group. A step takes
//   step + prefill_token · (tokens of prefill) + decode_token · (of decode).
struct GroupModel {
  double step_s = 8e-3;
  double prefill_token_s = 40e-6;
  double decode_token_s = 20e-6;
  int64_t max_step_tokens = 2048;
  int64_t kv_capacity_tokens = 131'072;
};

struct SimulatedRequest {
  uint64_t id = 0;
  double arrived_s = 0;
  std::vector<uint64_t> chain;  // as HashPages has it
  int64_t prompt_tokens = 0;
  int64_t output_tokens = 0;
};

// A worker group as far as a gateway can see it: chunked prefill in order of
// arrival, one token a step for each sequence that decodes, a prefix cache that
// forgets what was used least recently. Time is given in seconds.
//
// One thread's.
class SimulatedGroup {
 public:
  struct Ended {
    uint64_t id;
    int64_t prompt_tokens;
    int64_t cached_tokens;
    double ttft_s;
  };

  explicit SimulatedGroup(const GroupModel& model);

  void Add(std::unique_ptr<SimulatedRequest> request) {
    waiting_tokens_ += request->prompt_tokens;
    waiting_.push_back({.request = std::move(request)});
  }

  bool is_idle() const { return waiting_.empty() && decoding_ == 0; }

  // What a step has computed, by the ids of requests.
  struct Outcome {
    double took_s = 0;
    std::vector<uint64_t> first_tokens;
    std::vector<Ended> ended;
  };

  // One step, which begins now.
  Outcome Step(double now_s);

  GroupLoad load() const;
  // Sequences that decoded or waited, each as long as it did.
  double sequence_seconds() const { return sequence_seconds_; }

 private:
  struct Sequence {
    std::unique_ptr<SimulatedRequest> request;
    bool is_started = false;
    int64_t cached_tokens = 0;
    int64_t rest = 0;  // of the prompt, to be computed
    double first_token_s = 0;
  };
  struct LaterEnd {
    bool operator()(const std::pair<uint64_t, uint64_t>& a,
                    const std::pair<uint64_t, uint64_t>& b) const {
      return a > b;
    }
  };

  void Decode(Sequence sequence);
  Ended End(uint64_t slot);
  int64_t Prefill(int64_t budget);
  bool StartFirst();

  const GroupModel model_;
  PrefixIndex cache_;
  std::deque<Sequence> waiting_;     // the first ones may be started
  std::vector<Sequence> prefilled_;  // in this step
  // Those that decode, by the step of their last token and a number.
  std::priority_queue<std::pair<uint64_t, uint64_t>,
                      std::vector<std::pair<uint64_t, uint64_t>>, LaterEnd>
      ends_;
  std::vector<Sequence> slots_;  // of those that decode, by that number
  std::vector<uint64_t> free_slots_;
  uint64_t step_ = 0;
  int64_t decoding_ = 0;
  int64_t waiting_tokens_ = 0;
  int64_t held_tokens_ = 0;
  double sequence_seconds_ = 0;
};

}  // namespace lockstep::testing
