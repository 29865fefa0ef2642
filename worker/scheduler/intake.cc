#include "worker/scheduler/intake.h"

#include <absl/strings/str_cat.h>

#include <cstdint>
#include <memory>
#include <optional>

#include "common/status_macros.h"
#include "worker/core/sequence.h"

namespace lockstep {
namespace {

absl::Status CheckRange(const v1::AddRequest& add, const char* what,
                        int64_t value, int64_t least, int64_t most) {
  if (value >= least && value <= most) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("request ", add.request(), " has ", what, " ", value,
                   ", it must be from ", least, " to ", most, "."));
}

// Up to `most` resume tokens a choice.
absl::Status CheckResume(const v1::AddRequest& add, int most) {
  const int n = static_cast<int>(add.sampling().n());
  const int num_counts = add.resume_token_counts_size();
  if (num_counts > 0 || (n > 1 && add.resume_token_ids_size() > 0)) {
    LOCKSTEP_RETURN_IF_ERROR(
        CheckRange(add, "num_resume_token_counts", num_counts, n, n));
  }
  int64_t rest = add.resume_token_ids_size();
  for (const uint32_t count : add.resume_token_counts()) {
    LOCKSTEP_RETURN_IF_ERROR(
        CheckRange(add, "num_resume_tokens", count, 0, most));
    rest -= count;
  }
  if (num_counts > 0) {
    LOCKSTEP_RETURN_IF_ERROR(
        CheckRange(add, "num_resume_tokens of no choice", rest, 0, 0));
  } else {
    LOCKSTEP_RETURN_IF_ERROR(
        CheckRange(add, "num_resume_tokens", rest, 0, most));
  }
  int64_t least = 0;
  for (const uint32_t choice : add.ended_choices()) {
    LOCKSTEP_RETURN_IF_ERROR(
        CheckRange(add, "ended choice", choice, least, n - 1));
    least = int64_t{choice} + 1;
  }
  return CheckRange(add, "num_ended_choices", add.ended_choices_size(), 0,
                    n - 1);
}

// One choice, without a token.
absl::Status CheckBadWords(const v1::AddRequest& add) {
  int64_t ids = 0;
  for (const uint32_t size : add.sampling().bad_word_sizes()) {
    LOCKSTEP_RETURN_IF_ERROR(
        CheckRange(add, "bad_word_sizes", size, 1, UINT32_MAX));
    ids += size;
  }
  return CheckRange(add, "num_bad_word_token_ids",
                    add.sampling().bad_word_token_ids_size(), ids, ids);
}

absl::Status CheckEmbedding(const v1::AddRequest& add) {
  LOCKSTEP_RETURN_IF_ERROR(CheckRange(add, "n", add.sampling().n(), 1, 1));
  LOCKSTEP_RETURN_IF_ERROR(CheckRange(add, "pooling", add.embedding().pooling(),
                                      v1::LAST_TOKEN, v1::MEAN));
  return CheckResume(add, /*most=*/0);
}

absl::Status CheckAdd(const v1::AddRequest& add, const SchedulerState& state) {
  if (add.request() <= state.last_request) {
    return absl::InvalidArgumentError(
        absl::StrCat("request ", add.request(), " comes after request ",
                     state.last_request, "; numbers must count up."));
  }
  const int max_context = state.options.max_context;
  const int num_prompt_tokens = add.prompt_token_ids_size();
  const int most_prompt_tokens =
      add.has_embedding() ? max_context : max_context - 1;
  LOCKSTEP_RETURN_IF_ERROR(CheckRange(
      add, "num_prompt_tokens", num_prompt_tokens, 1, most_prompt_tokens));
  if (add.has_embedding()) return CheckEmbedding(add);
  LOCKSTEP_RETURN_IF_ERROR(
      CheckRange(add, "n", add.sampling().n(), 1, kMaxChoices));
  LOCKSTEP_RETURN_IF_ERROR(CheckResume(add, max_context - num_prompt_tokens));
  LOCKSTEP_RETURN_IF_ERROR(CheckBadWords(add));
  return CheckRange(add, "max_tokens", add.sampling().max_tokens(), 1,
                    UINT32_MAX);
}

}  // namespace

absl::Status ApplyAdd(const v1::AddRequest& add, SchedulerState* state) {
  LOCKSTEP_RETURN_IF_ERROR(CheckAdd(add, *state));
  state->last_request = add.request();
  const uint64_t next_step = state->last_step + 1;
  state->table.Add(std::make_shared<const v1::AddRequest>(add), next_step);
  for (ScheduledSequence* scheduled : state->table.Choices(add.request())) {
    // So early, only what an earlier call has done can be at an end.
    if (HasEnded(add, scheduled->id().choice)) {
      state->Finish(scheduled, v1::ABORTED, std::nullopt);
    } else if (!add.has_embedding() &&
               HasFullLength(scheduled->sequence, state->options.max_context)) {
      state->Finish(scheduled, v1::LENGTH, std::nullopt);
    }
  }
  return absl::OkStatus();
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
