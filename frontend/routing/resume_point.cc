#include "frontend/routing/resume_point.h"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <utility>

namespace lockstep {
namespace {

// A request for more is refused; until then it takes no more memory.
constexpr uint32_t kMostChoices = 64;

}  // namespace

ResumePoint::ResumePoint(v1::WorkerGenerateRequest request)
    : request_(std::move(request)),
      attempt_id_(request_.request_id()),
      choices_(request_.sampling().has_n()
                   ? std::min(request_.sampling().n(), kMostChoices)
                   : 1) {}

v1::WorkerGenerateRequest ResumePoint::NextRequest() {
  v1::WorkerGenerateRequest request = request_;
  was_accepted_ = false;
  if (++num_attempts_ == 1) return request;
  attempt_id_ = absl::StrCat(request_.request_id(), "-", num_attempts_);
  request.set_request_id(attempt_id_);
  prompt_logprobs_to_skip_ = prompt_logprobs_;
  if (prompt_logprobs_ + 1 == request_.prompt_token_ids_size()) {
    request.mutable_sampling()->clear_prompt_logprobs();
  }
  AddResumedChoices(&request);
  return request;
}

void ResumePoint::AddResumedChoices(v1::WorkerGenerateRequest* request) const {
  const bool has_ended_some =
      std::any_of(choices_.begin(), choices_.end(),
                  [](const Choice& choice) { return choice.has_finished; });
  if (num_tokens_ == 0 && !has_ended_some) return;
  for (size_t index = 0; index < choices_.size(); ++index) {
    const Choice& choice = choices_[index];
    if (choice.has_finished) {
      request->add_ended_choices(index);
      request->add_resume_token_counts(0);
      continue;
    }
    request->add_resume_token_counts(choice.token_ids.size());
    request->mutable_resume_token_ids()->Add(choice.token_ids.begin(),
                                             choice.token_ids.end());
  }
}

const v1::WorkerGenerateResponse* ResumePoint::Take(
    const v1::WorkerGenerateResponse& message) {
  switch (message.event_case()) {
    case v1::WorkerGenerateResponse::kAccepted:
      if (!request_.has_embedding()) {
        request_.mutable_sampling()->set_seed(message.accepted().seed());
      }
      if (!was_accepted_ && std::exchange(ever_accepted_, true)) {
        was_accepted_ = true;
        return nullptr;
      }
      was_accepted_ = true;
      return &message;
    case v1::WorkerGenerateResponse::kDelta:
      return TakeDelta(message);
    case v1::WorkerGenerateResponse::kFinish:
      if (Choice* choice = Find(message.finish().index())) {
        choice->has_finished = true;
        usage_ = message.finish().usage();
      }
      return &message;
    case v1::WorkerGenerateResponse::kEmbedding:
      choices_.front().has_finished = true;
      return &message;
    case v1::WorkerGenerateResponse::kSummary:
      is_complete_ = true;
      return &message;
    case v1::WorkerGenerateResponse::EVENT_NOT_SET:
      break;
  }
  return &message;
}

const v1::WorkerGenerateResponse* ResumePoint::TakeDelta(
    const v1::WorkerGenerateResponse& message) {
  const v1::TokenDelta& delta = message.delta();
  if (Choice* choice = Find(delta.index())) {
    choice->token_ids.insert(choice->token_ids.end(), delta.token_ids().begin(),
                             delta.token_ids().end());
    num_tokens_ += delta.token_ids_size();
  }
  const int known =
      std::min(delta.prompt_logprobs_size(), prompt_logprobs_to_skip_);
  prompt_logprobs_to_skip_ -= known;
  prompt_logprobs_ += delta.prompt_logprobs_size() - known;
  if (known == 0) return &message;
  if (known == delta.prompt_logprobs_size() && delta.token_ids().empty()) {
    return nullptr;
  }
  rewritten_ = message;
  rewritten_.mutable_delta()->mutable_prompt_logprobs()->DeleteSubrange(0,
                                                                        known);
  return &rewritten_;
}

void ResumePoint::OnAborted(absl::Span<const uint32_t> choices) {
  for (const uint32_t index : choices) {
    if (Choice* choice = Find(index)) choice->was_aborted = true;
  }
}

std::deque<v1::WorkerGenerateResponse> ResumePoint::TakeOwed() {
  std::deque<v1::WorkerGenerateResponse> owed;
  if (is_complete_) return owed;
  usage_.set_prompt_tokens(request_.prompt_token_ids_size());
  for (size_t index = 0; index < choices_.size(); ++index) {
    Choice& choice = choices_[index];
    if (!choice.was_aborted || choice.has_finished) continue;
    choice.has_finished = true;
    v1::TokenFinish& finish = *owed.emplace_back().mutable_finish();
    finish.set_index(index);
    finish.set_reason(v1::ABORTED);
    *finish.mutable_usage() = usage_;
    finish.mutable_usage()->set_completion_tokens(choice.token_ids.size());
  }
  is_complete_ =
      std::all_of(choices_.begin(), choices_.end(),
                  [](const Choice& choice) { return choice.has_finished; });
  if (is_complete_) {
    v1::Usage& usage = *owed.emplace_back().mutable_summary()->mutable_usage();
    usage = usage_;
    usage.set_completion_tokens(num_tokens_);
  }
  return owed;
}

}  // namespace lockstep
