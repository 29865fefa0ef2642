#include "worker/service/request_validator.h"

#include <absl/strings/ascii.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/string_view.h>

#include <algorithm>
#include <utility>

#include "common/status_macros.h"
#include "common/unknown_fields.h"
#include "worker/grammar/grammar_vocabulary.h"
#include "worker/service/resolve_embedding.h"
#include "worker/service/resolve_sampling.h"

namespace lockstep {
namespace {

constexpr int kMaxRequestIdSize = 128;
constexpr int kMaxPriority = 100;
constexpr int kMaxAbortedRequests = 1024;

template <typename... Parts>
absl::Status Refusal(const Parts&... parts) {
  return absl::InvalidArgumentError(absl::StrCat(parts...));
}

bool IsRequestIdCharacter(char c) {
  return absl::ascii_isalnum(c) || c == '.' || c == '_' || c == '-';
}

absl::Status CheckRequestId(absl::string_view field, absl::string_view id) {
  if (id.empty() || id.size() > kMaxRequestIdSize) {
    return Refusal(field, " has ", id.size(), " characters, it must have 1 to ",
                   kMaxRequestIdSize, ".");
  }
  const auto bad = std::find_if_not(id.begin(), id.end(), IsRequestIdCharacter);
  if (bad == id.end()) return absl::OkStatus();
  return Refusal(field, " has the byte 0x",
                 absl::Hex(static_cast<uint8_t>(*bad), absl::kZeroPad2),
                 " at offset ", bad - id.begin(),
                 ", only [A-Za-z0-9._-] are allowed.");
}

absl::Status CheckIds(absl::string_view field,
                      const google::protobuf::RepeatedField<uint32_t>& ids,
                      int vocabulary_size) {
  for (int i = 0; i < ids.size(); ++i) {
    if (ids[i] < static_cast<uint32_t>(vocabulary_size)) continue;
    return Refusal(field, "[", i, "] is ", ids[i],
                   ", it must be below the vocabulary size ", vocabulary_size,
                   ".");
  }
  return absl::OkStatus();
}

absl::Status CheckPrompt(const v1::WorkerGenerateRequest& request,
                         const RequestLimits& limits) {
  const int size = request.prompt_token_ids_size();
  const int most =
      request.has_embedding() ? limits.max_context : limits.max_context - 1;
  if (size == 0) {
    return Refusal("prompt_token_ids is empty, it must have 1 to ", most,
                   " ids.");
  }
  if (size > most) {
    return Refusal("prompt_token_ids has ", size, " ids, it must have 1 to ",
                   most, ": the context is ", limits.max_context,
                   " tokens, prompt and output.");
  }
  return CheckIds("prompt_token_ids", request.prompt_token_ids(),
                  limits.vocabulary_size);
}

absl::Status CheckLength(const v1::WorkerGenerateRequest& request,
                         uint32_t max_tokens, const RequestLimits& limits) {
  const uint32_t rest = limits.max_context - request.prompt_token_ids_size();
  if (max_tokens <= rest) return absl::OkStatus();
  return Refusal("sampling.max_tokens is ", max_tokens, " and the prompt has ",
                 request.prompt_token_ids_size(),
                 " tokens, together they must not exceed the context of ",
                 limits.max_context, " tokens.");
}

absl::Status CheckResumeCounts(const v1::WorkerGenerateRequest& request,
                               const v1::ResolvedSampling& sampling) {
  const uint32_t size = request.resume_token_ids_size();
  const auto& counts = request.resume_token_counts();
  const uint32_t n = sampling.n();
  const uint32_t most = sampling.max_tokens();
  if (counts.empty() && (n == 1 || size == 0)) {
    if (size <= most) return absl::OkStatus();
    return Refusal("resume_token_ids has ", size,
                   " ids, it must have at most sampling.max_tokens, ", most,
                   ".");
  }
  if (static_cast<uint32_t>(counts.size()) != n) {
    return Refusal("resume_token_counts has ", counts.size(),
                   " counts, it must have one for each of the ", n,
                   " choices.");
  }
  uint64_t sum = 0;
  for (int i = 0; i < counts.size(); ++i) {
    sum += counts[i];
    if (counts[i] <= most) continue;
    return Refusal("resume_token_counts[", i, "] is ", counts[i],
                   ", it must be at most sampling.max_tokens, ", most, ".");
  }
  if (sum == size) return absl::OkStatus();
  return Refusal("resume_token_counts sum to ", sum, ", they must sum to the ",
                 size, " of resume_token_ids.");
}

absl::Status CheckEndedChoices(const v1::WorkerGenerateRequest& request,
                               uint32_t n) {
  const auto& ended = request.ended_choices();
  for (int i = 0; i < ended.size(); ++i) {
    if (ended[i] >= n) {
      return Refusal("ended_choices[", i, "] is ", ended[i],
                     ", it must be below sampling.n, ", n, ".");
    }
    if (i > 0 && ended[i] <= ended[i - 1]) {
      return Refusal("ended_choices[", i, "] is ", ended[i],
                     ", it must be above the one before it, ", ended[i - 1],
                     ".");
    }
  }
  if (static_cast<uint32_t>(ended.size()) < n) return absl::OkStatus();
  return Refusal("ended_choices has all ", n,
                 " choices, at least one must go on.");
}

absl::Status CheckResume(const v1::WorkerGenerateRequest& request,
                         const v1::ResolvedSampling& sampling,
                         const RequestLimits& limits) {
  LOCKSTEP_RETURN_IF_ERROR(CheckIds(
      "resume_token_ids", request.resume_token_ids(), limits.vocabulary_size));
  LOCKSTEP_RETURN_IF_ERROR(CheckResumeCounts(request, sampling));
  return CheckEndedChoices(request, sampling.n());
}

absl::Status CheckGrammarOf(const v1::WorkerGenerateRequest& request) {
  if (!request.has_grammar()) return absl::OkStatus();
  if (request.sampling().ignore_eos()) {
    return Refusal(
        "sampling.ignore_eos is true, it must be false with a grammar, whose "
        "end is an end-of-text id.");
  }
  return CheckGrammar("grammar", request.grammar());
}

absl::Status CheckNoGeneration(const v1::WorkerGenerateRequest& request) {
  const char* const field =
      request.has_sampling()                   ? "sampling"
      : request.resume_token_ids_size() > 0    ? "resume_token_ids"
      : request.resume_token_counts_size() > 0 ? "resume_token_counts"
      : request.ended_choices_size() > 0       ? "ended_choices"
      : request.has_grammar()                  ? "grammar"
                                               : nullptr;
  if (field == nullptr) return absl::OkStatus();
  return Refusal(field,
                 " is set, it must not be where an embedding is asked "
                 "for: no token is chosen.");
}

absl::Status CheckPriority(int priority) {
  if (priority >= -kMaxPriority && priority <= kMaxPriority) {
    return absl::OkStatus();
  }
  return Refusal("priority is ", priority, ", it must be from ", -kMaxPriority,
                 " to ", kMaxPriority, ".");
}

absl::Status Embed(const v1::WorkerGenerateRequest& request,
                   const RequestLimits& limits, v1::AddRequest* add) {
  if (!limits.embedding.has_value()) {
    return absl::UnimplementedError(
        absl::StrCat("embeddings are not supported: ", limits.no_embedding));
  }
  LOCKSTEP_RETURN_IF_ERROR(CheckNoGeneration(request));
  LOCKSTEP_ASSIGN_OR_RETURN(
      *add->mutable_embedding(),
      ResolveEmbedding(request.embedding(), *limits.embedding));
  add->mutable_sampling()->set_n(1);
  return absl::OkStatus();
}

absl::Status Sample(const v1::WorkerGenerateRequest& request,
                    const RequestLimits& limits, uint64_t drawn_seed,
                    v1::AddRequest* add) {
  if (!limits.no_generation.empty()) {
    return absl::UnimplementedError(
        absl::StrCat("generation is not supported: ", limits.no_generation));
  }
  LOCKSTEP_RETURN_IF_ERROR(CheckGrammarOf(request));
  SamplingLimits sampling_limits;
  sampling_limits.vocabulary_size = limits.vocabulary_size;
  sampling_limits.max_output_tokens =
      limits.max_context - request.prompt_token_ids_size();
  sampling_limits.eos_token_ids = limits.eos_token_ids;
  sampling_limits.defaults = limits.sampling_defaults;
  LOCKSTEP_ASSIGN_OR_RETURN(
      v1::ResolvedSampling sampling,
      ResolveSampling(request.sampling(), sampling_limits, drawn_seed));
  LOCKSTEP_RETURN_IF_ERROR(CheckLength(request, sampling.max_tokens(), limits));
  LOCKSTEP_RETURN_IF_ERROR(CheckResume(request, sampling, limits));
  *add->mutable_resume_token_ids() = request.resume_token_ids();
  *add->mutable_resume_token_counts() = request.resume_token_counts();
  *add->mutable_ended_choices() = request.ended_choices();
  *add->mutable_sampling() = std::move(sampling);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<v1::AddRequest> ValidateRequest(
    const v1::WorkerGenerateRequest& request, const RequestLimits& limits,
    uint64_t drawn_seed) {
  LOCKSTEP_RETURN_IF_ERROR(RefuseUnknownFields(request));
  if (request.has_request_id()) {
    LOCKSTEP_RETURN_IF_ERROR(
        CheckRequestId("request_id", request.request_id()));
  }
  LOCKSTEP_RETURN_IF_ERROR(CheckPrompt(request, limits));
  LOCKSTEP_RETURN_IF_ERROR(CheckPriority(request.priority()));

  v1::AddRequest add;
  *add.mutable_prompt_token_ids() = request.prompt_token_ids();
  add.set_priority(request.priority());
  add.set_bypass_prefix_cache(request.bypass_prefix_cache());
  LOCKSTEP_RETURN_IF_ERROR(request.has_embedding()
                               ? Embed(request, limits, &add)
                               : Sample(request, limits, drawn_seed, &add));
  return add;
}

absl::Status ValidateAbort(const v1::AbortRequest& request) {
  LOCKSTEP_RETURN_IF_ERROR(RefuseUnknownFields(request));
  const int size = request.request_ids_size();
  if (size > kMaxAbortedRequests) {
    return Refusal("request_ids has ", size, " ids, it must have at most ",
                   kMaxAbortedRequests, ".");
  }
  for (int i = 0; i < size; ++i) {
    LOCKSTEP_RETURN_IF_ERROR(CheckRequestId(
        absl::StrCat("request_ids[", i, "]"), request.request_ids(i)));
  }
  if (request.choices().empty() || size == 1) return absl::OkStatus();
  return Refusal("choices is given with ", size,
                 " request_ids, it needs exactly 1.");
}

}  // namespace lockstep
