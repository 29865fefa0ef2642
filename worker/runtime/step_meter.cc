#include "worker/runtime/step_meter.h"

namespace lockstep {
namespace {

// As vLLM's of vllm:iteration_tokens_total.
constexpr double kStepTokensBounds[] = {1,   8,    16,   32,   64,   128,  256,
                                        512, 1024, 2048, 4096, 8192, 16384};

}  // namespace

StepMeter::StepMeter() : steps_(kShortBounds), tokens_(kStepTokensBounds) {}

void StepMeter::Enter(v1::StepStage stage, Clock::time_point now) {
  if (stage_ == v1::FINISHED) {
    begun_ = now;
  } else {
    in_stage_ns_[stage_].fetch_add(
        std::chrono::nanoseconds(now - entered_).count(),
        std::memory_order_relaxed);
    if (stage == v1::FINISHED) steps_.Observe(now - begun_);
  }
  stage_ = stage;
  entered_ = now;
}

double StepMeter::SecondsIn(v1::StepStage stage) const {
  return 1e-9 * in_stage_ns_[stage].load(std::memory_order_relaxed);
}

}  // namespace lockstep
