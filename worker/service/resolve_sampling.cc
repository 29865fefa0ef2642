#include "worker/service/resolve_sampling.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/string_view.h>
#include <absl/types/span.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "common/status_macros.h"
#include "worker/core/sequence.h"

namespace lockstep {
namespace {

constexpr int kMaxStopIds = 64;
constexpr int kMaxBiasIds = 1024;
constexpr float kMaxBias = 100;
constexpr uint32_t kMaxLogprobs = 20;
constexpr int kMaxAllowedIds = 4096;
constexpr int kMaxBadWords = 256;
constexpr int kMaxIdsOfBadWord = 256;

absl::Status Refuse(absl::string_view field, const absl::AlphaNum& value,
                    absl::string_view limit) {
  return absl::InvalidArgumentError(absl::StrCat(
      "sampling.", field, " is ", value, ", it must be ", limit, "."));
}

// Written so that NaN is in no range.
absl::Status CheckRange(absl::string_view field, float value, float low,
                        float high) {
  if (value >= low && value <= high) return absl::OkStatus();
  return Refuse(field, value, absl::StrCat("from ", low, " to ", high));
}

absl::Status CheckAboveZero(absl::string_view field, float value, float high) {
  if (value > 0 && value <= high) return absl::OkStatus();
  return Refuse(field, value, absl::StrCat("above 0 and at most ", high));
}

absl::Status CheckAtMost(absl::string_view field, uint32_t value,
                         uint32_t high) {
  if (value <= high) return absl::OkStatus();
  return Refuse(field, value, absl::StrCat("at most ", high));
}

absl::Status CheckInVocabulary(absl::string_view field, uint32_t id,
                               uint32_t vocabulary_size) {
  if (id < vocabulary_size) return absl::OkStatus();
  return Refuse(field, id,
                absl::StrCat("below the vocabulary size ", vocabulary_size));
}

absl::Status CheckCount(absl::string_view field, int count, int limit) {
  if (count <= limit) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("sampling.", field, " has ",
                                                 count, " entries, at most ",
                                                 limit, " are allowed."));
}

absl::Status ResolveShape(const v1::SamplingParams& params,
                          v1::ResolvedSampling* resolved) {
  const float temperature = params.has_temperature() ? params.temperature() : 1;
  const float top_p = params.has_top_p() ? params.top_p() : 1;
  const float min_p = params.min_p();
  LOCKSTEP_RETURN_IF_ERROR(CheckRange("temperature", temperature, 0, 100));
  LOCKSTEP_RETURN_IF_ERROR(CheckAboveZero("top_p", top_p, 1));
  LOCKSTEP_RETURN_IF_ERROR(CheckRange("min_p", min_p, 0, 1));
  resolved->set_temperature(temperature);
  resolved->set_top_k(params.top_k());
  resolved->set_top_p(top_p);
  resolved->set_min_p(min_p);
  return absl::OkStatus();
}

absl::Status ResolvePenalties(const v1::SamplingParams& params,
                              v1::ResolvedSampling* resolved) {
  const float repetition =
      params.has_repetition_penalty() ? params.repetition_penalty() : 1;
  const float presence = params.presence_penalty();
  const float frequency = params.frequency_penalty();
  LOCKSTEP_RETURN_IF_ERROR(
      CheckAboveZero("repetition_penalty", repetition, 100));
  LOCKSTEP_RETURN_IF_ERROR(CheckRange("presence_penalty", presence, -2, 2));
  LOCKSTEP_RETURN_IF_ERROR(CheckRange("frequency_penalty", frequency, -2, 2));
  resolved->set_repetition_penalty(repetition);
  resolved->set_presence_penalty(presence);
  resolved->set_frequency_penalty(frequency);
  return absl::OkStatus();
}

absl::Status ResolveBias(const v1::SamplingParams& params,
                         uint32_t vocabulary_size,
                         v1::ResolvedSampling* resolved) {
  LOCKSTEP_RETURN_IF_ERROR(
      CheckCount("logit_bias", params.logit_bias_size(), kMaxBiasIds));
  const std::map<uint32_t, float> by_id(params.logit_bias().begin(),
                                        params.logit_bias().end());
  for (const auto& [id, bias] : by_id) {
    LOCKSTEP_RETURN_IF_ERROR(
        CheckInVocabulary("logit_bias key", id, vocabulary_size));
    LOCKSTEP_RETURN_IF_ERROR(CheckRange(absl::StrCat("logit_bias[", id, "]"),
                                        bias, -kMaxBias, kMaxBias));
    resolved->add_bias_token_ids(id);
    resolved->add_bias_values(bias);
  }
  return absl::OkStatus();
}

// At most `most`, all of them the vocabulary's.
absl::Status CheckIds(const std::string& field, absl::Span<const uint32_t> ids,
                      int most, uint32_t vocabulary_size) {
  LOCKSTEP_RETURN_IF_ERROR(
      CheckCount(field, static_cast<int>(ids.size()), most));
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] < vocabulary_size) continue;
    return CheckInVocabulary(absl::StrCat(field, "[", i, "]"), ids[i],
                             vocabulary_size);
  }
  return absl::OkStatus();
}

// In order, each once.
std::vector<uint32_t> Sorted(std::vector<uint32_t> ids) {
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  return ids;
}

absl::Status ResolveAllowedIds(const v1::SamplingParams& params,
                               uint32_t vocabulary_size,
                               v1::ResolvedSampling* resolved) {
  const auto& allowed = params.allowed_token_ids();
  LOCKSTEP_RETURN_IF_ERROR(
      CheckIds("allowed_token_ids", allowed, kMaxAllowedIds, vocabulary_size));
  const auto ids = Sorted({allowed.begin(), allowed.end()});
  resolved->mutable_allowed_token_ids()->Assign(ids.begin(), ids.end());
  return absl::OkStatus();
}

absl::Status ResolveBadWords(const v1::SamplingParams& params,
                             uint32_t vocabulary_size,
                             v1::ResolvedSampling* resolved) {
  const auto& words = params.bad_words();
  LOCKSTEP_RETURN_IF_ERROR(CheckCount("bad_words", words.size(), kMaxBadWords));
  for (int i = 0; i < words.size(); ++i) {
    const auto& ids = words[i].ids();
    const std::string field = absl::StrCat("bad_words[", i, "].ids");
    LOCKSTEP_RETURN_IF_ERROR(
        CheckIds(field, ids, kMaxIdsOfBadWord, vocabulary_size));
    if (ids.empty()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "sampling.", field, " is empty, it must have at least one id."));
    }
    resolved->mutable_bad_word_token_ids()->MergeFrom(ids);
    resolved->add_bad_word_sizes(ids.size());
  }
  return absl::OkStatus();
}

absl::Status ResolveStopIds(const v1::SamplingParams& params,
                            const SamplingLimits& limits,
                            v1::ResolvedSampling* resolved) {
  LOCKSTEP_RETURN_IF_ERROR(CheckIds("stop_token_ids", params.stop_token_ids(),
                                    kMaxStopIds, limits.vocabulary_size));
  std::vector<uint32_t> stops(params.stop_token_ids().begin(),
                              params.stop_token_ids().end());
  if (!params.ignore_eos()) {
    // A model's files may name ids that its logits do not have.
    std::copy_if(limits.eos_token_ids.begin(), limits.eos_token_ids.end(),
                 std::back_inserter(stops),
                 [&](uint32_t id) { return id < limits.vocabulary_size; });
  }
  stops = Sorted(std::move(stops));
  resolved->mutable_stop_token_ids()->Assign(stops.begin(), stops.end());
  return absl::OkStatus();
}

absl::Status ResolveLength(const v1::SamplingParams& params,
                           uint32_t max_output_tokens,
                           v1::ResolvedSampling* resolved) {
  const uint32_t max_tokens =
      params.has_max_tokens() ? params.max_tokens() : max_output_tokens;
  if (max_tokens < 1) return Refuse("max_tokens", max_tokens, "at least 1");
  if (params.min_tokens() > max_tokens) {
    return Refuse("min_tokens", params.min_tokens(),
                  absl::StrCat("at most max_tokens, ", max_tokens));
  }
  resolved->set_max_tokens(max_tokens);
  resolved->set_min_tokens(params.min_tokens());
  return absl::OkStatus();
}

absl::Status ResolveReports(const v1::SamplingParams& params,
                            v1::ResolvedSampling* resolved) {
  const uint32_t n = params.has_n() ? params.n() : 1;
  if (n < 1 || n > kMaxChoices) {
    return Refuse("n", n, absl::StrCat("from 1 to ", kMaxChoices));
  }
  LOCKSTEP_RETURN_IF_ERROR(
      CheckAtMost("logprobs", params.logprobs(), kMaxLogprobs));
  LOCKSTEP_RETURN_IF_ERROR(
      CheckAtMost("prompt_logprobs", params.prompt_logprobs(), kMaxLogprobs));
  resolved->set_n(n);
  if (params.has_logprobs()) {
    resolved->set_logprobs_plus_one(1 + params.logprobs());
  }
  if (params.has_prompt_logprobs()) {
    resolved->set_prompt_logprobs_plus_one(1 + params.prompt_logprobs());
  }
  return absl::OkStatus();
}

v1::SamplingParams WithDefaults(const v1::SamplingParams& asked,
                                const SamplingLimits& limits) {
  v1::SamplingParams params = limits.defaults;
  params.MergeFrom(asked);
  if (params.has_max_tokens() && !asked.has_max_tokens()) {
    params.set_max_tokens(
        std::min(std::max(params.max_tokens(), params.min_tokens()),
                 limits.max_output_tokens));
  }
  return params;
}

}  // namespace

absl::StatusOr<v1::ResolvedSampling> ResolveSampling(
    const v1::SamplingParams& asked, const SamplingLimits& limits,
    uint64_t drawn_seed) {
  const v1::SamplingParams params = WithDefaults(asked, limits);
  v1::ResolvedSampling resolved;
  LOCKSTEP_RETURN_IF_ERROR(ResolveShape(params, &resolved));
  LOCKSTEP_RETURN_IF_ERROR(ResolvePenalties(params, &resolved));
  LOCKSTEP_RETURN_IF_ERROR(
      ResolveBias(params, limits.vocabulary_size, &resolved));
  LOCKSTEP_RETURN_IF_ERROR(
      ResolveAllowedIds(params, limits.vocabulary_size, &resolved));
  LOCKSTEP_RETURN_IF_ERROR(
      ResolveBadWords(params, limits.vocabulary_size, &resolved));
  LOCKSTEP_RETURN_IF_ERROR(ResolveStopIds(params, limits, &resolved));
  LOCKSTEP_RETURN_IF_ERROR(
      ResolveLength(params, limits.max_output_tokens, &resolved));
  LOCKSTEP_RETURN_IF_ERROR(ResolveReports(params, &resolved));
  resolved.set_seed(params.has_seed() ? params.seed() : drawn_seed);
  return resolved;
}

}  // namespace lockstep
