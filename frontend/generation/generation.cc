#include "frontend/generation/generation.h"

#include <algorithm>
#include <utility>

#include "common/status_macros.h"
#include "common/tracing/trace_context.h"
#include "frontend/generation/answer_limits.h"
#include "frontend/generation/bad_words.h"
#include "frontend/generation/chat_format.h"
#include "frontend/generation/choice_stream.h"
#include "frontend/ledger/answer_record.h"

namespace lockstep {
namespace {

// A model's ids that only pad its vocabulary have no text.
absl::StatusOr<std::string> DecodeKnown(const Tokenizer& tokenizer,
                                        std::vector<uint32_t> ids,
                                        bool skip_special_tokens) {
  const uint32_t known = tokenizer.info().vocabulary_size;
  ids.erase(std::remove_if(ids.begin(), ids.end(),
                           [known](uint32_t id) { return id >= known; }),
            ids.end());
  return tokenizer.Decode(ids, skip_special_tokens);
}

}  // namespace

Generation::Generation(Pipeline* pipeline, size_t request_bytes,
                       Parser<GenerateSpec> parse, ResponseSink* sink,
                       Caller caller)
    : pipeline_(pipeline),
      request_bytes_(request_bytes),
      parse_(std::move(parse)),
      sink_(sink),
      caller_(std::move(caller)),
      answer_(&spec_, &pipeline->tokenizer(), sink) {}

void Generation::Start() {
  started_ = Clock::now();
  pipeline_->meter().OnStart();
  auto ticket = pipeline_->inflight().Admit(
      request_bytes_, [this](const absl::Status& why) { Cancel(why); });
  if (!ticket.ok()) return End(ticket.status());
  ticket_ = *std::move(ticket);
  if (pipeline_->groups().HasGroup()) return Enqueue();
  AwaitModel();
}

void Generation::AwaitModel() {
  GroupSet& groups = pipeline_->groups();
  absl::MutexLock lock(&mutex_);
  wait_ = groups.AwaitModel([this] {
    {
      absl::MutexLock lock(&mutex_);
      wait_ = 0;
    }
    Enqueue();
  });
  if (!why_cancelled_.ok()) groups.waits().End(wait_);
}

void Generation::Enqueue() {
  const absl::Status status = pipeline_->encode_pool().Run(
      request_bytes_, [this] { ParseAndEncode(); });
  if (!status.ok()) End(status);
}

void Generation::ParseAndEncode() {
  // It may have waited for the thread.
  if (const auto why = why_cancelled(); !why.ok()) return End(why);
  auto spec = parse_();
  parse_ = nullptr;  // what it holds of the request goes
  if (!spec.ok()) return End(spec.status());
  spec_ = *std::move(spec);
  if (caller_.grant != nullptr) {
    spec_.priority = std::max(spec_.priority, caller_.grant->priority_floor());
  }
  const ChatFormat& format = pipeline_->chat_format();
  if (const auto refused = CheckTools(spec_.prompt, format); !refused.ok()) {
    return End(refused);
  }
  auto prompt = EncodePrompt(spec_.prompt, format, pipeline_->tokenizer());
  if (!prompt.ok()) return End(prompt.status());
  const size_t uncut_tokens = prompt->token_ids.size();
  Truncate(spec_.truncation, pipeline_->tokenizer(), &prompt->token_ids);
  prompt_tokens_ = prompt->token_ids.size();
  SpendTokens(prompt_tokens_);
  absl::Status status = CheckPromptTokens(spec_, prompt_tokens_);
  if (status.ok()) status = ticket_.AddPromptTokens(prompt_tokens_);
  if (status.ok() && spec_.return_prompt) {
    status = KeepPrompt(*prompt, prompt_tokens_ < uncut_tokens);
  }
  if (status.ok()) {
    status =
        AddBadWords(spec_.bad_words, pipeline_->tokenizer(), &spec_.sampling);
  }
  if (!status.ok()) return End(status);
  std::optional<ChatReading> reading;
  if (const auto* chat = std::get_if<ChatPrompt>(&spec_.prompt.prompt)) {
    reading = MakeChatReading(&format, spec_, *chat, *prompt->rendered);
  }
  grammar_ = GrammarOf(spec_, reading.has_value() ? &*reading : nullptr);
  if (reading.has_value()) answer_.ReadAsChat(*std::move(reading));
  spec_.prompt = {};
  Send(prompt->token_ids);
}

void Generation::SpendTokens(int64_t tokens) {
  if (caller_.grant != nullptr) caller_.grant->SpendTokens(tokens);
}

absl::Status Generation::KeepPrompt(const EncodedPrompt& prompt, bool is_cut) {
  std::string text;
  const auto* as_text = std::get_if<TextPrompt>(&spec_.prompt.prompt);
  if (as_text != nullptr && !is_cut) {
    text = as_text->text;
  } else if (prompt.rendered.has_value() && !is_cut) {
    text = *prompt.rendered;
  } else {
    LOCKSTEP_ASSIGN_OR_RETURN(
        text, DecodeKnown(pipeline_->tokenizer(), prompt.token_ids,
                          spec_.skip_special_tokens));
  }
  answer_.KeepPrompt(prompt.token_ids, std::move(text));
  return absl::OkStatus();
}

void Generation::Send(const std::vector<uint32_t>& prompt_token_ids) {
  pipeline_->meter().OnSend(Clock::now() - started_);
  v1::WorkerGenerateRequest request;
  request.set_request_id(spec_.worker_request_id);
  request.mutable_prompt_token_ids()->Add(prompt_token_ids.begin(),
                                          prompt_token_ids.end());
  if (spec_.embedding.has_value()) {
    *request.mutable_embedding() = *spec_.embedding;
  } else {
    *request.mutable_sampling() = spec_.sampling;
  }
  request.set_priority(spec_.priority);
  if (grammar_.has_value()) {
    *request.mutable_grammar() = *std::exchange(grammar_, std::nullopt);
  }
  WorkerCall::Listener* const listener = this;
  std::shared_ptr<RoutedCall> call;
  absl::Status why;
  {
    absl::MutexLock lock(&mutex_);
    why = why_cancelled_;
    if (why.ok()) {
      call_ = std::make_shared<RoutedCall>(&pipeline_->groups(),
                                           std::move(request), MetadataOfCall(),
                                           spec_.deadline, listener);
    }
    call = call_;
  }
  if (call == nullptr) return End(why);
  call->Start();
}

// By which the worker's log can be joined to ours.
CallMetadata Generation::MetadataOfCall() const {
  if (caller_.record == nullptr) return {};
  CallMetadata metadata = TraceHeaders(caller_.record->request().trace);
  metadata.emplace_back("x-request-id", request_id());
  return metadata;
}

std::string Generation::request_id() const {
  if (!spec_.request_id.empty()) return spec_.request_id;
  const bool is_known = caller_.record != nullptr &&
                        !caller_.record->request().request_id.empty();
  return is_known ? caller_.record->request().request_id : "-";
}

void Generation::Cancel(const absl::Status& why) {
  std::shared_ptr<RoutedCall> call;
  {
    absl::MutexLock lock(&mutex_);
    if (why_cancelled_.ok()) why_cancelled_ = why;
    call = call_;
    if (wait_ != 0) pipeline_->groups().waits().End(wait_);
  }
  if (call != nullptr) call->Cancel();
}

void Generation::OnMessage(const v1::WorkerGenerateResponse& message) {
  if (message.has_delta()) MeterTokens(message);
  std::vector<uint32_t> stopped;
  const absl::Status status = answer_.Add(message, &stopped);
  std::shared_ptr<RoutedCall> call;
  {
    absl::MutexLock lock(&mutex_);
    call = call_;
  }
  if (!stopped.empty()) call->AbortChoices(stopped);
  failovers_ = call->failovers();
  if (status.ok()) return sink_->AwaitRoom([call] { call->Next(); });
  failure_ = status;
  call->Cancel();
  call->Next();  // fails, and so leads to OnEnd
}

void Generation::MeterTokens(const v1::WorkerGenerateResponse& message) {
  GenerationMeter& meter = pipeline_->meter();
  const Clock::time_point now = Clock::now();
  meter.OnTokens(message.delta().token_ids_size());
  if (first_delta_.has_value()) {
    meter.OnMoreTokens(now - last_delta_);
  } else {
    first_delta_ = now;
    meter.OnFirstTokens(now - started_);
  }
  last_delta_ = now;
}

void Generation::OnEnd(absl::Status status) {
  if (!failure_.ok()) return End(failure_);
  const absl::Status why = why_cancelled();
  if (!why.ok() && !absl::IsDeadlineExceeded(status)) return End(why);
  End(InClientsWords(status, spec_));
}

absl::Status Generation::why_cancelled() const {
  absl::MutexLock lock(&mutex_);
  return why_cancelled_;
}

AnswerRecord Generation::RecordOf(const absl::Status& status) const {
  AnswerRecord record;
  record.request_id = request_id();
  if (caller_.record != nullptr) {
    record.trace_id = caller_.record->request().trace.trace_id;
  }
  if (caller_.grant != nullptr) record.key_name = caller_.grant->key_name();
  const auto model = pipeline_->groups().Model();
  if (model.ok()) record.model = model->name;
  record.worker_request_id = spec_.worker_request_id;
  record.usage = answer_.summary().usage;
  record.usage.set_prompt_tokens(prompt_tokens_);
  record.usage.set_completion_tokens(answer_.completion_tokens());
  if (first_delta_.has_value()) {
    record.first_token = absl::FromChrono(*first_delta_ - started_);
  }
  record.total = absl::FromChrono(Clock::now() - started_);
  record.finish_reasons = answer_.finish_reasons();
  record.failovers = failovers_;
  record.status = status;
  return record;
}

void Generation::End(const absl::Status& status) {
  const AnswerRecord record = RecordOf(status);
  LogAnswer(record);
  if (caller_.record != nullptr) caller_.record->AddAnswer(record);
  pipeline_->meter().OnEnd(status, Clock::now() - started_,
                           first_delta_.has_value(), prompt_tokens_,
                           record.usage.cached_tokens());
  SpendTokens(answer_.completion_tokens());
  caller_.grant = nullptr;
  if (!status.ok()) return sink_->OnError(status, failovers_);
  SummaryEvent summary = answer_.summary();
  summary.failovers = failovers_;
  sink_->OnSummary(std::move(summary));
}

}  // namespace lockstep
