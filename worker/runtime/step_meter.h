#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>

#include "common/metrics/histogram.h"
#include "proto/group.pb.h"

namespace lockstep {

// How long steps take, and which stages of them. The step thread tells it,
// whoever scrapes reads it; neither waits, and nothing is allocated.
//
//   StepMeter meter;
//   meter.Enter(v1::PLANS);  …  meter.Enter(v1::FINISHED);
//   meter.steps();
class StepMeter {
 public:
  using Clock = std::chrono::steady_clock;

  StepMeter();

  // The step thread's. A step lasts from the first stage entered after FINISHED
  // to the next FINISHED; between them the group was idle.
  void Enter(v1::StepStage stage, Clock::time_point now = Clock::now());
  void OnPlan(int num_tokens) { tokens_.Observe(num_tokens); }
  void OnAgreed() { agreed_.fetch_add(1, std::memory_order_relaxed); }

  // Any thread's.
  const Histogram& steps() const { return steps_; }    // seconds
  const Histogram& tokens() const { return tokens_; }  // of a step
  // Plans whose digest was the leader's, or was the leader's own.
  uint64_t agreed() const { return agreed_.load(std::memory_order_relaxed); }
  double SecondsIn(v1::StepStage stage) const;

 private:
  // Written by the step thread alone.
  std::array<std::atomic<int64_t>, v1::StepStage_ARRAYSIZE> in_stage_ns_ = {};
  Histogram steps_;
  Histogram tokens_;
  std::atomic<uint64_t> agreed_ = 0;

  v1::StepStage stage_ = v1::FINISHED;
  Clock::time_point entered_;
  Clock::time_point begun_;
};

}  // namespace lockstep
