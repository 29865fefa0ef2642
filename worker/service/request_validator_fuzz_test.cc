#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "worker/core/output_sink.h"
#include "worker/scheduler/scheduler.h"
#include "worker/service/request_validator.h"

namespace {

using lockstep::SequenceId;
namespace v1 = lockstep::v1;

constexpr int kMaxContext = 64;
constexpr int kVocabularySize = 100;

class IgnoringSink final : public lockstep::OutputSink {
 public:
  void OnFirstScheduled(SequenceId, int) override {}
  void OnPromptLogprobs(SequenceId,
                        std::vector<v1::PositionLogprobs>) override {}
  void OnToken(SequenceId, uint32_t,
               std::vector<v1::PositionLogprobs>) override {}
  void OnFinish(SequenceId, v1::FinishReason,
                std::optional<uint32_t>) override {}
};

void Require(bool holds) {
  if (!holds) __builtin_trap();
}

bool IsIn(double value, double low, double high) {
  return value >= low && value <= high;
}

lockstep::RequestLimits Limits() {
  lockstep::RequestLimits limits = {.vocabulary_size = kVocabularySize,
                                    .max_context = kMaxContext,
                                    .eos_token_ids = {2, 1000}};
  v1::EmbeddingInfo& info = limits.embedding.emplace();
  info.set_pooling(v1::LAST_TOKEN);
  info.set_dimensions(8);
  info.add_fewer_dimensions(4);
  return limits;
}

void CheckEmbedding(const v1::ResolvedEmbedding& embedding) {
  Require(embedding.dimensions() == 4 || embedding.dimensions() == 8);
  Require(IsIn(embedding.pooling(), v1::LAST_TOKEN, v1::MEAN));
}

void CheckResolved(const v1::AddRequest& add) {
  if (add.has_embedding()) return CheckEmbedding(add.embedding());
  const v1::ResolvedSampling& sampling = add.sampling();
  Require(IsIn(sampling.temperature(), 0, 100));
  Require(IsIn(sampling.top_p(), 0, 1) && sampling.top_p() > 0);
  Require(IsIn(sampling.min_p(), 0, 1));
  Require(IsIn(sampling.repetition_penalty(), 0, 100));
  Require(sampling.repetition_penalty() > 0);
  Require(IsIn(sampling.presence_penalty(), -2, 2));
  Require(IsIn(sampling.frequency_penalty(), -2, 2));
  Require(sampling.min_tokens() <= sampling.max_tokens());
  Require(sampling.bias_token_ids_size() == sampling.bias_values_size());
  for (const float bias : sampling.bias_values()) {
    Require(IsIn(bias, -100, 100));
  }
  for (const auto* ids :
       {&add.prompt_token_ids(), &add.resume_token_ids(),
        &sampling.stop_token_ids(), &sampling.bias_token_ids()}) {
    for (const uint32_t id : *ids) Require(id < kVocabularySize);
  }
}

}  // namespace

// Whatever the bytes: a refusal, or a request with every value in its range,
// which every rank's scheduler takes.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const lockstep::RequestLimits kLimits = Limits();
  v1::AbortRequest abort;
  if (abort.ParseFromArray(data, static_cast<int>(size))) {
    (void)lockstep::ValidateAbort(abort);
  }
  v1::WorkerGenerateRequest request;
  if (!request.ParseFromArray(data, static_cast<int>(size))) return 0;
  auto add = lockstep::ValidateRequest(request, kLimits, /*drawn_seed=*/1);
  if (!add.ok()) return 0;
  CheckResolved(*add);
  IgnoringSink sink;
  lockstep::Scheduler scheduler(
      {.num_pages = 16, .page_size = 4, .max_context = kMaxContext}, &sink);
  v1::RankMessage message;
  *message.mutable_add() = *std::move(add);
  message.mutable_add()->set_request(1);
  Require(scheduler.Apply(message).ok());
  return 0;
}
