#include "worker/runtime/step_loop.h"

#include <absl/strings/str_cat.h>

#include "common/error_reason.h"
#include "common/status_macros.h"

namespace lockstep {

// Its end is within the step's time limit, too: who takes the outputs may hang.
absl::Status StepLoop::Run() {
  while (true) {
    const absl::StatusOr<bool> stop = Step();
    if (parts_.on_step_end) parts_.on_step_end(parts_.scheduler->stats());
    LOCKSTEP_RETURN_IF_ERROR(stop.status());
    parts_.watchdog->EndStep();
    Enter(frame_.step, v1::FINISHED);
    if (*stop) return absl::OkStatus();
  }
}

absl::StatusOr<bool> StepLoop::Step() {
  const bool idle = !parts_.scheduler->HasWork();
  if (!idle) {
    parts_.watchdog->BeginStep(frame_.step + 1);
    Enter(frame_.step + 1, v1::WAITS_FOR_FRAME);
  }
  LOCKSTEP_RETURN_IF_ERROR(parts_.source->Next(idle, &frame_));
  if (idle) parts_.watchdog->BeginStep(frame_.step);
  Enter(frame_.step, v1::PLANS);
  LOCKSTEP_ASSIGN_OR_RETURN(const bool stop, ApplyMessages());
  const StepPlan& plan = parts_.scheduler->Plan();
  LOCKSTEP_RETURN_IF_ERROR(Agree(plan));
  LOCKSTEP_RETURN_IF_ERROR(Launch(plan));
  while (parts_.scheduler->MustCommit() ||
         (stop && parts_.scheduler->oldest() != nullptr)) {
    LOCKSTEP_RETURN_IF_ERROR(Commit());
  }
  LOCKSTEP_RETURN_IF_ERROR(CheckPages());
  return stop;
}

absl::StatusOr<bool> StepLoop::ApplyMessages() {
  bool stop = false;
  for (const std::string& bytes : frame_.messages) {
    if (!message_.ParseFromString(bytes)) {
      failure_kind_ = v1::PROTOCOL_VIOLATED;
      return absl::InternalError(
          absl::StrCat("step ", frame_.step, " has a message of ", bytes.size(),
                       " bytes that is none."));
    }
    if (message_.has_stop()) {
      stop = true;
      continue;
    }
    const absl::Status applied = Apply(message_);
    if (applied.ok()) continue;
    failure_kind_ = v1::PROTOCOL_VIOLATED;
    return absl::InternalError(absl::StrCat(
        "step ", frame_.step,
        " has a message that no leader sends: ", applied.message()));
  }
  return stop;
}

absl::Status StepLoop::Apply(const v1::RankMessage& message) {
  if (parts_.grammars == nullptr) return parts_.scheduler->Apply(message);
  if (message.has_prepare_grammar()) {
    parts_.grammars->Prepare(message.prepare_grammar().number(),
                             message.prepare_grammar().grammar());
    return absl::OkStatus();
  }
  if (message.has_release_grammar()) {
    parts_.grammars->Release(message.release_grammar().number());
    return absl::OkStatus();
  }
  return parts_.scheduler->Apply(message);
}

// What is compared covers the messages too, so that a rank that was told
// something else is found in this step, not when it first matters.
absl::Status StepLoop::Agree(const StepPlan& plan) {
  for (const std::string& bytes : frame_.messages) digest_.Add(bytes);
  digest_.Add(plan.digest);
  const Digest digest = digest_.Finish();
  parts_.history->Record(
      {.step = frame_.step,
       .messages = static_cast<uint32_t>(frame_.messages.size()),
       .tokens = static_cast<uint32_t>(plan.num_tokens),
       .digest = digest});
  Enter(frame_.step, v1::WAITS_FOR_DIGEST);
  const absl::Status status = parts_.source->Agree(digest);
  if (!status.ok()) failure_kind_ = v1::DIGEST_MISMATCH;
  if (parts_.meter != nullptr && status.ok()) {
    parts_.meter->OnAgreed();
    if (!plan.empty()) parts_.meter->OnPlan(plan.num_tokens);
  }
  return status;
}

absl::Status StepLoop::Launch(const StepPlan& plan) {
  Enter(frame_.step, v1::EXECUTES);
  if (plan.empty()) return absl::OkStatus();
  return OfEngine(plan.step, parts_.engine->Launch(plan));
}

absl::Status StepLoop::Commit() {
  const StepPlan& plan = *parts_.scheduler->oldest();
  result_.spans.resize(plan.spans.size());
  if (!plan.empty()) {
    LOCKSTEP_RETURN_IF_ERROR(
        OfEngine(plan.step, parts_.engine->Retire(&result_)));
  }
  parts_.scheduler->Commit(result_);
  return absl::OkStatus();
}

absl::Status StepLoop::OfEngine(uint64_t step, const absl::Status& status) {
  if (status.ok()) return status;
  failure_kind_ =
      absl::IsUnavailable(status) ? v1::COLLECTIVE_FAILED : v1::ENGINE_FAILED;
  if (step == frame_.step) return status;
  return WithMessage(
      status, absl::StrCat("step ", step, ", in flight: ", status.message()));
}

absl::Status StepLoop::CheckPages() {
  if (parts_.scheduler->HasWork()) return absl::OkStatus();
  const absl::Status status = parts_.scheduler->CheckConservation();
  if (!status.ok()) failure_kind_ = v1::STATE_CORRUPT;
  return status;
}

void StepLoop::Enter(uint64_t step, v1::StepStage stage) {
  if (parts_.progress != nullptr) parts_.progress->Enter(step, stage);
  if (parts_.meter != nullptr) parts_.meter->Enter(stage);
}

}  // namespace lockstep
