#include "worker/scheduler/intake.h"

#include <glog/logging.h>

#include <memory>
#include <optional>

namespace lockstep {
namespace {

void CheckValid(const v1::AddRequest& add, const SchedulerOptions& options) {
  const int num_tokens =
      add.prompt_token_ids_size() + add.resume_token_ids_size();
  CHECK_GT(add.prompt_token_ids_size(), 0) << "request " << add.request();
  CHECK_LT(add.prompt_token_ids_size(), options.max_context)
      << "request " << add.request();
  CHECK_LE(num_tokens, options.max_context) << "request " << add.request();
  CHECK_GE(add.sampling().n(), 1) << "request " << add.request();
  CHECK_GE(add.sampling().max_tokens(), 1) << "request " << add.request();
  CHECK(add.sampling().n() == 1 || add.resume_token_ids().empty())
      << "request " << add.request();
}

}  // namespace

void ApplyAdd(const v1::AddRequest& add, SchedulerState* state) {
  CheckValid(add, state->options);
  state->table.Add(std::make_shared<const v1::AddRequest>(add));
  for (ScheduledSequence* scheduled : state->table.Choices(add.request())) {
    // So early, only resumed output can have used up its length.
    if (HasFullLength(scheduled->sequence, state->options.max_context)) {
      state->Finish(scheduled, v1::LENGTH, std::nullopt);
    }
  }
}

void ApplyAbort(const v1::AbortSequences& abort, SchedulerState* state) {
  if (abort.choices().empty()) {
    for (ScheduledSequence* scheduled : state->table.Choices(abort.request())) {
      state->Finish(scheduled, v1::ABORTED, std::nullopt);
    }
    return;
  }
  for (const uint32_t choice : abort.choices()) {
    ScheduledSequence* scheduled = state->table.Find({abort.request(), choice});
    if (scheduled != nullptr) {
      state->Finish(scheduled, v1::ABORTED, std::nullopt);
    }
  }
}

}  // namespace lockstep
