#include "frontend/openai/generate_call.h"

#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/time/time.h>

#include <cstdint>
#include <map>
#include <utility>

#include "common/error_reason.h"
#include "common/timer_thread.h"
#include "frontend/generation/error_detail.h"
#include "frontend/openai/error_response.h"
#include "frontend/openai/streamed_answer.h"
#include "frontend/openai/whole_answer.h"
#include "frontend/routing/group_set.h"
#include "frontend/routing/routed_call.h"

namespace lockstep::openai {
namespace {

// An answer of so many is completed within a fraction of a millisecond, on
// whatever thread.
constexpr size_t kBriefBytes = 16 << 10;

std::unique_ptr<AnswerWriter> MakeAnswerWriter(
    AnswerStyle style, size_t prompts, const Tokenizer* tokenizer,
    std::shared_ptr<http::ResponseWriter> writer) {
  if (style.stream) {
    return std::make_unique<StreamedAnswer>(std::move(style), prompts,
                                            tokenizer, std::move(writer));
  }
  return std::make_unique<WholeAnswer>(std::move(style), prompts, tokenizer,
                                       std::move(writer));
}

absl::Status TooManyPrompts(size_t prompts, absl::string_view limit) {
  return WithField(absl::InvalidArgumentError(
                       absl::StrCat("prompt holds ", prompts, " prompts, but ",
                                    limit, "; send fewer at a time.")),
                   "prompt");
}

// 0 where there is none.
int64_t NumberIn(const std::map<std::string, std::string>& metadata,
                 const std::string& key) {
  const auto found = metadata.find(key);
  int64_t number = 0;
  if (found == metadata.end() || !absl::SimpleAtoi(found->second, &number)) {
    return 0;
  }
  return number;
}

}  // namespace

// The sink of one prompt's Generation.
class GenerateCall::Part : private ResponseSink {
 public:
  Part(GenerateCall* call, size_t prompt, size_t request_bytes,
       Parser<GenerateSpec> parse)
      : call_(call),
        prompt_(prompt),
        generation_(call->pipeline_, request_bytes, std::move(parse), this,
                    {.grant = call->grant_, .record = call->request_.access}) {}

  Generation& generation() { return generation_; }

 private:
  void OnAccepted(AcceptedEvent event) override {
    call_->WithAnswer([&](AnswerWriter* answer) {
      answer->OnAccepted(prompt_, std::move(event));
    });
  }
  void OnDelta(DeltaEvent event) override {
    call_->WithAnswer([&](AnswerWriter* answer) {
      answer->OnDelta(prompt_, std::move(event));
    });
  }
  void OnFinish(FinishEvent event) override {
    if (event.reason == v1::ABORTED) {
      return call_->Cancel(absl::UnavailableError(
          "the answer was ended at the worker before it was complete; try "
          "again."));
    }
    call_->WithAnswer([&](AnswerWriter* answer) {
      answer->OnFinish(prompt_, std::move(event));
    });
  }
  void OnSummary(SummaryEvent event) override {
    call_->OnPartEnd(absl::OkStatus(), &event);
  }
  void OnError(absl::Status status, int /*failovers*/) override {
    call_->OnPartEnd(status, nullptr);
  }
  void AwaitRoom(std::function<void()> resume) override {
    call_->AwaitRoom(std::move(resume));
  }

  GenerateCall* const call_;
  const size_t prompt_;
  Generation generation_;
};

void GenerateCall::Start(Pipeline* pipeline, http::Request request,
                         std::shared_ptr<AccessGrant> grant, Parse parse,
                         std::shared_ptr<http::ResponseWriter> writer) {
  const std::shared_ptr<GenerateCall> call(
      new GenerateCall(pipeline, std::move(request), std::move(grant),
                       std::move(parse), std::move(writer)));
  {
    absl::MutexLock lock(&call->mutex_);
    call->self_ = call;
  }
  call->writer_->OnGone([call] {
    call->Cancel(absl::CancelledError("the client closed the connection."));
  });
  call->EndAfterTimeout();
  call->StartPart(call->request_.body.size(),
                  [call = call.get()] { return call->ParseFirst(); });
}

GenerateCall::GenerateCall(Pipeline* pipeline, http::Request request,
                           std::shared_ptr<AccessGrant> grant, Parse parse,
                           std::shared_ptr<http::ResponseWriter> writer)
    : pipeline_(pipeline),
      request_(std::move(request)),
      grant_(std::move(grant)),
      parse_(std::move(parse)),
      writer_(std::move(writer)) {}

void GenerateCall::EndAfterTimeout() {
  GroupSet& groups = pipeline_->groups();
  const absl::Duration timeout = groups.options().request_timeout;
  absl::MutexLock lock(&mutex_);
  timer_ = groups.timers().At(
      TimerThread::Clock::now() + absl::ToChronoNanoseconds(timeout),
      [weak = weak_from_this(), timeout] {
        if (const auto call = weak.lock()) {
          call->Cancel(absl::DeadlineExceededError(TooLateMessage(timeout)));
        }
      });
}

absl::StatusOr<GenerateSpec> GenerateCall::ParseFirst() {
  auto parsed = parse_(request_);
  request_.body = std::string();
  if (!parsed.ok()) return parsed.status();
  std::vector<GenerateSpec>& specs = parsed->specs;
  const int most = pipeline_->inflight().limits().requests;
  if (static_cast<int>(specs.size()) > most) {
    return TooManyPrompts(
        specs.size(), absl::StrCat(most,
                                   " requests are held at once, the limit of "
                                   "--max_inflight_requests"));
  }
  {
    absl::MutexLock lock(&mutex_);
    expected_parts_ = specs.size();
    answer_ = MakeAnswerWriter(std::move(parsed->style), specs.size(),
                               &pipeline_->tokenizer(), writer_);
  }
  for (size_t i = 1; i < specs.size(); ++i) {
    StartPart(/*request_bytes=*/0,
              [spec = std::move(specs[i])] { return spec; });
  }
  return std::move(specs[0]);
}

void GenerateCall::StartPart(size_t request_bytes, Parser<GenerateSpec> parse) {
  Part* part = nullptr;
  {
    absl::MutexLock lock(&mutex_);
    parts_.push_back(std::make_unique<Part>(this, parts_.size(), request_bytes,
                                            std::move(parse)));
    part = parts_.back().get();
    // It starts nevertheless, so that it ends as the others do.
    if (!failure_.ok()) part->generation().Cancel(failure_);
  }
  part->generation().Start();
}

void GenerateCall::Cancel(const absl::Status& why) {
  absl::MutexLock lock(&mutex_);
  FailLocked(why);
}

void GenerateCall::FailLocked(const absl::Status& status) {
  if (!failure_.ok() || is_over_) return;
  failure_ = status;
  if (grant_ != nullptr) grant_->Release();
  if (answer_ != nullptr) {
    answer_->Fail(status);
  } else {
    writer_->Send(ErrorResponse(status));
  }
  for (const auto& part : parts_) part->generation().Cancel(status);
}

absl::Status GenerateCall::ExplainLocked(const absl::Status& status) const {
  const auto metadata = ErrorMetadataOf(status);
  const int64_t limit = NumberIn(metadata, "limit");
  if (expected_parts_ == 1 || limit == 0) return status;
  const std::string reason = ErrorReasonOf(status);
  if (reason == "QUEUE_FULL_REQUESTS" && int64_t(expected_parts_) > limit) {
    return TooManyPrompts(
        expected_parts_,
        absl::StrCat(limit,
                     " requests wait in a worker group, the limit of "
                     "--max_queued_requests"));
  }
  const int64_t tokens =
      answer_->prompt_tokens() + NumberIn(metadata, "tokens");
  if (reason == "QUEUE_FULL_TOKENS" && tokens > limit) {
    return TooManyPrompts(
        expected_parts_,
        absl::StrCat("of more than ", limit,
                     " tokens in all, the limit of --max_queued_tokens"));
  }
  return status;
}

void GenerateCall::OnPartEnd(const absl::Status& status,
                             const SummaryEvent* summary) {
  std::shared_ptr<GenerateCall> self;  // these outlive the lock
  std::vector<std::unique_ptr<Part>> parts;
  std::unique_ptr<AnswerWriter> answer;
  {
    absl::MutexLock lock(&mutex_);
    if (!status.ok()) FailLocked(ExplainLocked(status));
    if (failure_.ok()) answer_->OnSummary(*summary);
    if (++ended_parts_ < expected_parts_) return;
    if (failure_.ok()) {
      is_over_ = true;
      if (grant_ != nullptr) grant_->Release();
      answer = std::move(answer_);
    }
    pipeline_->groups().timers().Cancel(timer_);
    parts.swap(parts_);
    self.swap(self_);
  }
  if (answer != nullptr) {
    Complete(pipeline_, std::move(answer), std::move(parts));
  }
}

void GenerateCall::Complete(Pipeline* pipeline,
                            std::unique_ptr<AnswerWriter> answer,
                            std::vector<std::unique_ptr<Part>> parts) {
  if (answer->work_bytes() <= kBriefBytes) return answer->Complete();
  struct Rest {
    std::unique_ptr<AnswerWriter> answer;
    std::vector<std::unique_ptr<Part>> parts;  // and their places in flight
  };
  const auto rest =
      std::make_shared<Rest>(Rest{std::move(answer), std::move(parts)});
  const auto complete = [rest] {
    rest->answer->Complete();
    rest->parts.clear();
  };
  const size_t bytes = rest->answer->work_bytes();
  if (!pipeline->encode_pool().Run(bytes, complete).ok()) complete();
}

void GenerateCall::WithAnswer(const std::function<void(AnswerWriter*)>& tell) {
  absl::MutexLock lock(&mutex_);
  if (!failure_.ok()) return;
  tell(answer_.get());
  if (!answer_->failure().ok()) FailLocked(answer_->failure());
}

void GenerateCall::AwaitRoom(std::function<void()> resume) {
  AnswerWriter* answer = nullptr;
  {
    absl::MutexLock lock(&mutex_);
    if (failure_.ok()) answer = answer_.get();
  }
  // Outside of the lock, as it may resume at once.
  if (answer == nullptr) return resume();
  answer->AwaitRoom(std::move(resume));
}

}  // namespace lockstep::openai
