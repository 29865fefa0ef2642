#include "frontend/generation/embed_batch.h"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <utility>
#include <variant>

namespace lockstep {
namespace {

// Generations of one request at a time.
constexpr size_t kMostRunning = 32;
// And their tokens: half of what a group's queue takes by default.
constexpr size_t kMostRunningContexts = 4;

// What is done with a result writes as much; a little of it on any thread.
constexpr size_t kBytesOfValue = 12;
constexpr size_t kBriefBytes = 16 << 10;

// No text has more tokens than bytes, but for a few that are added to it.
size_t MostTokens(const PromptSpec& input, const GenerateSpec& spec) {
  const auto* ids = std::get_if<TokenPrompt>(&input.prompt);
  const size_t size = ids != nullptr
                          ? ids->ids.size()
                          : std::get<TextPrompt>(input.prompt).text.size();
  return std::min<size_t>(
      size, spec.truncation.value_or(spec.model.max_context_tokens));
}

absl::Status TooMany(size_t inputs) {
  return absl::InvalidArgumentError(
      absl::StrCat("input holds ", inputs,
                   " inputs, but 1 request is held at once, the "
                   "limit of --max_inflight_requests; send one at a time."));
}

}  // namespace

// The sink of one input's Generation.
class EmbedBatch::Part : private ResponseSink {
 public:
  Part(EmbedBatch* batch, size_t input, size_t request_bytes,
       Parser<GenerateSpec> parse)
      : batch_(batch),
        input_(input),
        generation_(batch->pipeline_, request_bytes, std::move(parse), this,
                    batch->caller_) {}

  Generation& generation() { return generation_; }

 private:
  void OnAccepted(AcceptedEvent /*event*/) override {}
  void OnDelta(DeltaEvent /*event*/) override {}
  // Where there is no embedding: it was aborted.
  void OnFinish(FinishEvent /*event*/) override {
    batch_->Cancel(absl::UnavailableError(
        "the request was ended at the worker before it was complete; try "
        "again."));
  }
  void OnEmbedding(v1::Embedding embedding) override {
    batch_->OnEmbedding(input_, std::move(embedding));
  }
  void OnSummary(SummaryEvent event) override {
    batch_->OnPartEnd(input_, absl::OkStatus(), event);
  }
  void OnError(absl::Status status, int /*failovers*/) override {
    batch_->OnPartEnd(input_, status, {});
  }
  void AwaitRoom(std::function<void()> resume) override { resume(); }

  EmbedBatch* const batch_;
  const size_t input_;
  Generation generation_;
};

EmbedBatch::EmbedBatch(Pipeline* pipeline, size_t request_bytes,
                       Parser<EmbedSpec> parse, Caller caller, Done done)
    : pipeline_(pipeline),
      request_bytes_(request_bytes),
      caller_(std::move(caller)),
      done_(std::move(done)),
      parse_(std::move(parse)) {}

EmbedBatch::~EmbedBatch() = default;

void EmbedBatch::Start() {
  Part* first = nullptr;
  {
    absl::MutexLock lock(&mutex_);
    self_ = shared_from_this();
    parts_.push_back(std::make_unique<Part>(this, /*input=*/0, request_bytes_,
                                            [this] { return ParseFirst(); }));
    first = parts_.front().get();
    num_started_ = num_running_ = 1;
    if (!failure_.ok()) first->generation().Cancel(failure_);
  }
  first->generation().Start();
}

absl::StatusOr<GenerateSpec> EmbedBatch::ParseFirst() {
  auto parsed = parse_();
  parse_ = nullptr;  // what it holds of the request goes
  if (!parsed.ok()) return parsed.status();
  if (parsed->inputs.size() > 1 &&
      pipeline_->inflight().limits().requests == 1) {
    return TooMany(parsed->inputs.size());
  }
  spec_ = *std::move(parsed);
  for (const PromptSpec& input : spec_.inputs) {
    costs_.push_back(MostTokens(input, spec_.each));
  }
  {
    absl::MutexLock lock(&mutex_);
    parts_.resize(spec_.inputs.size());
    result_.embeddings.resize(spec_.inputs.size());
    running_cost_ = costs_.front();
  }
  StartParts();
  return SpecOf(0);
}

void EmbedBatch::StartParts() {
  while (Part* const part = NextPart()) part->generation().Start();
}

EmbedBatch::Part* EmbedBatch::NextPart() {
  const size_t most_running = std::clamp<size_t>(
      pipeline_->inflight().limits().requests - 1, 1, kMostRunning);
  // The first stays to the end, and its tokens with it.
  const size_t limit = pipeline_->inflight().limits().prompt_tokens;
  const size_t most_cost = std::min<size_t>(
      kMostRunningContexts * spec_.each.model.max_context_tokens,
      limit - std::min(limit, costs_.front()));
  absl::MutexLock lock(&mutex_);
  const size_t input = num_started_;
  if (!failure_.ok() || input == parts_.size()) return nullptr;
  const bool has_room =
      num_running_ < most_running && running_cost_ + costs_[input] <= most_cost;
  if (num_running_ > 0 && !has_room) return nullptr;
  ++num_started_;
  ++num_running_;
  running_cost_ += costs_[input];
  parts_[input] =
      std::make_unique<Part>(this, input, /*request_bytes=*/0,
                             [this, input] { return SpecOf(input); });
  return parts_[input].get();
}

GenerateSpec EmbedBatch::SpecOf(size_t input) {
  GenerateSpec spec = spec_.each;
  spec.prompt = std::move(spec_.inputs[input]);
  if (spec_.inputs.size() > 1) {
    absl::StrAppend(&spec.worker_request_id, "-", input);
  }
  return spec;
}

void EmbedBatch::OnEmbedding(size_t input, v1::Embedding embedding) {
  absl::MutexLock lock(&mutex_);
  result_.embeddings[input] = std::move(embedding);
}

void EmbedBatch::OnPartEnd(size_t input, const absl::Status& status,
                           const SummaryEvent& summary) {
  // Another part, which ends now too, may be the last.
  const std::shared_ptr<EmbedBatch> self = shared_from_this();
  if (!status.ok()) Cancel(status);
  // Its place among the requests in flight is free before it runs no more: the
  // next part to start, perhaps on another thread, needs it.
  if (input > 0) Take(input).reset();
  std::unique_ptr<Part> first;  // outlives the lock
  bool is_over = false;
  {
    absl::MutexLock lock(&mutex_);
    AddLocked(summary);
    --num_running_;
    if (input < costs_.size()) running_cost_ -= costs_[input];
    const bool is_last = num_started_ == parts_.size() || !failure_.ok();
    is_over = is_last && num_running_ == 0;
    if (is_over) {
      first = std::move(parts_[0]);
      self_ = nullptr;
    }
  }
  first.reset();
  if (!is_over) return StartParts();
  End();
}

std::unique_ptr<EmbedBatch::Part> EmbedBatch::Take(size_t input) {
  absl::MutexLock lock(&mutex_);
  return std::move(parts_[input]);
}

void EmbedBatch::AddLocked(const SummaryEvent& summary) {
  v1::Usage& usage = result_.usage;
  usage.set_prompt_tokens(usage.prompt_tokens() +
                          summary.usage.prompt_tokens());
  usage.set_cached_tokens(usage.cached_tokens() +
                          summary.usage.cached_tokens());
  result_.failovers += summary.failovers;
}

void EmbedBatch::Cancel(const absl::Status& why) {
  absl::MutexLock lock(&mutex_);
  if (!failure_.ok()) return;
  failure_ = why;
  for (const auto& part : parts_) {
    if (part != nullptr) part->generation().Cancel(why);
  }
}

void EmbedBatch::End() {
  absl::StatusOr<EmbedResult> result;
  {
    absl::MutexLock lock(&mutex_);
    if (failure_.ok()) {
      result = std::move(result_);
    } else {
      result = failure_;
    }
  }
  if (caller_.grant != nullptr) caller_.grant->Release();
  size_t bytes = 0;
  if (result.ok()) {
    for (const v1::Embedding& embedding : result->embeddings) {
      bytes += kBytesOfValue * embedding.values_size();
    }
  }
  if (bytes <= kBriefBytes) return done_(std::move(result));
  // Once, but a std::function must be copyable.
  const auto done = [self = shared_from_this(),
                     held = std::make_shared<absl::StatusOr<EmbedResult>>(
                         std::move(result))] { self->done_(std::move(*held)); };
  if (!pipeline_->encode_pool().Run(bytes, done).ok()) done();
}

}  // namespace lockstep
