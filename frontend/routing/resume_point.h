#pragma once

#include <absl/types/span.h>

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "proto/worker.pb.h"

namespace lockstep {

// How far the answer to a request has come, so that another group can go on
// with it where one was lost: no token lost, none twice.
//
//   ResumePoint point(request);
//   send(point.NextRequest());
//   if (const auto* news = point.Take(message)) deliver(*news);
//   …                              // the group is lost
//   for (const auto& message : point.TakeOwed()) deliver(message);
//   if (!point.is_complete()) send(point.NextRequest());
//
// The first group to accept the request fixes its seed. Not thread-safe.
class ResumePoint {
 public:
  explicit ResumePoint(v1::WorkerGenerateRequest request);

  // What to ask the next group: the request, under an id of its own, with what
  // has come of each choice and the seed.
  v1::WorkerGenerateRequest NextRequest();
  const v1::WorkerGenerateRequest& request() const { return request_; }
  // As the group at work knows it.
  const std::string& request_id() const { return attempt_id_; }

  // A message of the group at work: what of it the client has not got, or null.
  // Valid until the next call, or as long as `message` is.
  const v1::WorkerGenerateResponse* Take(
      const v1::WorkerGenerateResponse& message);

  // These choices are at their ends: the group at work was told to stop.
  void OnAborted(absl::Span<const uint32_t> choices);

  // What a lost group would have said yet: the finishes of aborted choices, and
  // if that was all, the summary.
  std::deque<v1::WorkerGenerateResponse> TakeOwed();

  bool was_accepted() const { return was_accepted_; }  // by the group at work
  bool has_tokens() const { return num_tokens_ > 0; }
  int64_t num_tokens() const { return num_tokens_; }
  bool is_complete() const { return is_complete_; }

 private:
  struct Choice {
    std::vector<uint32_t> token_ids;
    bool was_aborted = false;
    bool has_finished = false;
  };

  void AddResumedChoices(v1::WorkerGenerateRequest* request) const;
  const v1::WorkerGenerateResponse* TakeDelta(
      const v1::WorkerGenerateResponse& message);
  // A choice that the request did not ask for is no matter of ours.
  Choice* Find(uint32_t index) {
    return index < choices_.size() ? &choices_[index] : nullptr;
  }

  v1::WorkerGenerateRequest request_;
  std::string attempt_id_;
  int num_attempts_ = 0;
  bool was_accepted_ = false;
  bool ever_accepted_ = false;
  bool is_complete_ = false;
  std::vector<Choice> choices_;
  int64_t num_tokens_ = 0;           // of all choices
  v1::Usage usage_;                  // of a choice that finished
  int prompt_logprobs_ = 0;          // that came
  int prompt_logprobs_to_skip_ = 0;  // as this attempt sends them again
  v1::WorkerGenerateResponse rewritten_;
};

}  // namespace lockstep
