#pragma once

#include <absl/types/span.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "tests/testing/engine_group.h"
#include "worker/core/sequence.h"
#include "worker/core/step_plan.h"
#include "worker/core/step_result.h"
#include "worker/engine/engine.h"
#include "worker/engine/model_engine.h"
#include "worker/weights/model_files.h"

namespace lockstep::testing {

// An engine whose steps a test plans by hand, and all the logits it computes.
//
//   HandPlannedEngine engine(model, /*size=*/2, options);
//   const int a = engine.Add({5, 9, 2}), b = engine.Add({7, 7});
//   engine.Step({{a, 2}});             // a's first two tokens
//   engine.Step({{a, 1}, {b, 2}});     // its last one, and all of b's
//   engine.logits(a)[2];               // after a's last token
//
// An error of the engine ends the test program.
class HandPlannedEngine {
 public:
  // The next `count` tokens of a sequence.
  struct Part {
    int sequence;
    int count;
  };

  // `model` must outlive this.
  HandPlannedEngine(const ModelFiles& model, int size,
                    const EngineGroup::Options& options);

  struct Pages {
    int count = 0;
    int size = 16;  // tokens
  };
  // Any other engine, which must outlive this; `show` sets who sees its logits.
  HandPlannedEngine(
      Engine* engine,
      const std::function<void(ModelEngine::LogitsObserver)>& show,
      const Pages& pages);

  // A sequence of these tokens. Its pages are taken here, not in order.
  int Add(std::vector<uint32_t> tokens);

  // Wants the logits of all tokens of the step if `all_logits`, else of the
  // last token of each sequence alone. Where a part ends its sequence, the
  // token that follows is sampled and added to it.
  StepResult Step(const std::vector<Part>& parts, bool all_logits = true);

  // Of each position that was computed with logits; else empty.
  const std::vector<std::vector<float>>& logits(int sequence) const {
    return logits_[sequence];
  }
  absl::Span<const uint32_t> tokens(int sequence) const {
    return sequences_[sequence]->tokens();
  }
  // REQUIRES: made of a model.
  EngineGroup& group() { return *group_; }

 private:
  ModelEngine::LogitsObserver Observer();

  const std::unique_ptr<EngineGroup> group_;
  Engine* const engine_;
  const Pages pages_;
  std::vector<std::unique_ptr<Sequence>> sequences_;
  std::vector<std::vector<std::vector<float>>> logits_;
  int pages_taken_ = 0;
  uint64_t step_ = 0;
};

}  // namespace lockstep::testing
