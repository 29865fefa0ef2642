#include "frontend/openai/sampling_fields.h"

#include <absl/status/statusor.h>
#include <absl/strings/escaping.h>
#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "common/request_id.h"
#include "common/status_macros.h"
#include "frontend/generation/error_detail.h"
#include "frontend/generation/spec_check.h"
#include "frontend/routing/served_model.h"

namespace lockstep::openai {
namespace {

constexpr int64_t kMaxUint32 = std::numeric_limits<uint32_t>::max();
constexpr int64_t kMaxPriority = 100;
constexpr int64_t kMaxLogprobs = 20;
constexpr size_t kShownKeyBytes = 32;
// As a worker bounds them; each prompt of a request has its own copy.
constexpr size_t kMaxAllowedIds = 4096;
constexpr size_t kMaxStopIds = 64;
constexpr size_t kMaxBiases = 1024;
constexpr char kTruncation[] = "truncate_prompt_tokens";

void ReadShape(FieldReader* reader, v1::SamplingParams* sampling) {
  if (const auto v = reader->Number("temperature")) {
    sampling->set_temperature(*v);
  }
  if (const auto v = reader->Number("top_p")) sampling->set_top_p(*v);
  if (const auto v = reader->Number("min_p")) sampling->set_min_p(*v);
  // -1 is how some say 0.
  if (const auto v = reader->Integer("top_k", -1, kMaxUint32)) {
    sampling->set_top_k(*v < 0 ? 0 : *v);
  }
  if (const auto v = reader->Number("repetition_penalty")) {
    sampling->set_repetition_penalty(*v);
  }
  if (const auto v = reader->Number("presence_penalty")) {
    sampling->set_presence_penalty(*v);
  }
  if (const auto v = reader->Number("frequency_penalty")) {
    sampling->set_frequency_penalty(*v);
  }
}

// A seed is any 64 bits; clients write them signed or not.
void ReadSeed(FieldReader* reader, v1::SamplingParams* sampling) {
  const nlohmann::json* value = reader->Find("seed");
  if (value != nullptr && value->is_number_unsigned()) {
    sampling->set_seed(value->get<uint64_t>());
  } else if (const auto v = reader->Integer("seed")) {
    sampling->set_seed(static_cast<uint64_t>(*v));
  }
}

// A key is an id as it is written in one way only: "1", but not "01" or "+1",
// so that no id is there twice.
absl::StatusOr<uint32_t> ReadBiasKey(const std::string& key) {
  uint32_t id = 0;
  if (absl::SimpleAtoi(key, &id) && absl::StrCat(id) == key) return id;
  return WithField(absl::InvalidArgumentError(absl::StrCat(
                       "logit_bias has the key \"",
                       absl::Utf8SafeCHexEscape(key.substr(0, kShownKeyBytes)),
                       "\"; keys must be token ids, such as \"17\".")),
                   "logit_bias");
}

void ReadBias(FieldReader* reader, v1::SamplingParams* sampling) {
  const nlohmann::json* biases = reader->Object("logit_bias");
  if (biases == nullptr) return;
  if (biases->size() > kMaxBiases) {
    return reader->Fail("logit_bias", absl::StrCat("an object of at most ",
                                                   kMaxBiases, " token ids"));
  }
  FieldReader values(*biases, "logit_bias.");
  for (const auto& [key, value] : biases->items()) {
    const auto id = ReadBiasKey(key);
    if (!id.ok()) return reader->Adopt(id.status());
    const auto bias = values.Number(key);
    if (!bias.has_value()) values.Fail(key, "a number");
    (*sampling->mutable_logit_bias())[*id] = bias.value_or(0);
  }
  reader->Adopt(values.status());
}

void ReadKeptOut(FieldReader* reader, GenerateSpec* spec) {
  const auto allowed = reader->TokenIds("allowed_token_ids", kMaxAllowedIds);
  if (allowed.empty() && reader->Find("allowed_token_ids") != nullptr) {
    reader->Fail("allowed_token_ids", "a list of at least one token id");
  }
  spec->sampling.mutable_allowed_token_ids()->Assign(allowed.begin(),
                                                     allowed.end());
  spec->bad_words = reader->Strings("bad_words");
}

void ReadEnds(FieldReader* reader, GenerateSpec* spec, AnswerStyle* style) {
  v1::SamplingParams& sampling = spec->sampling;
  if (const auto v = reader->Integer("min_tokens", 0, kMaxUint32)) {
    sampling.set_min_tokens(*v);
  }
  if (const auto v = reader->Bool("ignore_eos")) sampling.set_ignore_eos(*v);
  style->stop_token_ids = reader->TokenIds("stop_token_ids", kMaxStopIds);
  sampling.mutable_stop_token_ids()->Assign(style->stop_token_ids.begin(),
                                            style->stop_token_ids.end());
  spec->stop = reader->Strings("stop");
  spec->include_stop_str_in_output =
      reader->Bool("include_stop_str_in_output").value_or(false);
}

void ReadStream(const RequestContext& context, FieldReader* reader,
                AnswerStyle* style) {
  style->stream = reader->Bool("stream").value_or(false);
  const nlohmann::json* object = reader->Object("stream_options");
  if (object == nullptr) return;
  if (!style->stream) {
    return reader->Fail("stream_options", "left out unless stream is true");
  }
  context.unknown_fields->CountOthers(
      *object, "stream_options.",
      {"include_usage", "continuous_usage_stats", "include_obfuscation"});
  FieldReader options(*object, "stream_options.");
  style->include_usage = options.Bool("include_usage").value_or(false);
  style->continuous_usage_stats =
      style->include_usage &&
      options.Bool("continuous_usage_stats").value_or(false);
  if (options.Bool("include_obfuscation").value_or(false)) {
    options.Fail("include_obfuscation", "false");
  }
  reader->Adopt(options.status());
}

void ReadShown(FieldReader* reader, GenerateSpec* spec, AnswerStyle* style) {
  spec->skip_special_tokens =
      reader->Bool("skip_special_tokens").value_or(true);
  style->return_token_ids = reader->Bool("return_token_ids").value_or(false);
  style->tokens_as_token_ids =
      reader->Bool("return_tokens_as_token_ids").value_or(false);
  if (const auto v = reader->Integer("prompt_logprobs", 0, kMaxLogprobs)) {
    if (style->stream) {
      return reader->Fail("prompt_logprobs", "left out where stream is true");
    }
    spec->sampling.set_prompt_logprobs(*v);
    style->prompt_logprobs = true;
  }
}

absl::Status ReadIds(const RequestContext& context, FieldReader* reader,
                     GenerateSpec* spec) {
  spec->request_id = context.request_id;
  const auto id = reader->String("request_id");
  if (!id.has_value()) return absl::OkStatus();
  const absl::Status status = CheckRequestId("request_id", *id);
  if (!status.ok()) return WithField(status, "request_id");
  if (!context.has_request_id) spec->request_id = *id;
  return absl::OkStatus();
}

}  // namespace

absl::Status ReadCommonFields(const RequestContext& context,
                              FieldReader* reader, GenerateSpec* spec,
                              AnswerStyle* style) {
  LOCKSTEP_RETURN_IF_ERROR(ReadCall(context, reader, spec, style));
  LOCKSTEP_RETURN_IF_ERROR(CheckGenerates(context.model));
  ReadShape(reader, &spec->sampling);
  ReadSeed(reader, &spec->sampling);
  ReadBias(reader, &spec->sampling);
  ReadKeptOut(reader, spec);
  ReadEnds(reader, spec, style);
  ReadStream(context, reader, style);
  ReadShown(reader, spec, style);
  if (const auto v = reader->Integer("n", 1, kMaxChoicesAskedFor)) {
    spec->sampling.set_n(*v);
    style->n = *v;
  }
  spec->return_prompt = style->return_token_ids;
  style->fingerprint = SystemFingerprint(context.model);
  LOCKSTEP_RETURN_IF_ERROR(reader->status());
  const absl::Status words = CheckBadWords(spec->bad_words);
  if (!words.ok()) return WithField(words, "bad_words");
  const absl::Status stop = CheckStop(spec->stop);
  return stop.ok() ? stop : WithField(stop, "stop");
}

absl::Status ReadTruncation(const RequestContext& context, FieldReader* reader,
                            GenerateSpec* spec) {
  const auto tokens = reader->Integer(kTruncation, -1, kMaxUint32);
  LOCKSTEP_RETURN_IF_ERROR(reader->status());
  if (!tokens.has_value()) return absl::OkStatus();
  const uint32_t context_tokens = context.model.max_context_tokens;
  const uint32_t asked = std::max<uint32_t>(1, spec->sampling.max_tokens());
  // -1: as many as fit.
  spec->truncation = *tokens >= 0             ? static_cast<uint32_t>(*tokens)
                     : asked < context_tokens ? context_tokens - asked
                                              : 1;
  const absl::Status status = CheckTruncation(spec->truncation, context.model);
  return status.ok() ? status : WithField(status, kTruncation);
}

absl::Status ReadCall(const RequestContext& context, FieldReader* reader,
                      GenerateSpec* spec, AnswerStyle* style) {
  LOCKSTEP_RETURN_IF_ERROR(ReadModel(context, reader, style));
  LOCKSTEP_RETURN_IF_ERROR(ReadIds(context, reader, spec));
  if (const auto v = reader->Integer("priority", -kMaxPriority, kMaxPriority)) {
    spec->priority = *v;
  }
  spec->model = context.model;
  style->created_s = context.now_s;
  return reader->status();
}

absl::Status ReadModel(const RequestContext& context, FieldReader* reader,
                       AnswerStyle* style) {
  style->model = reader->String("model").value_or(context.model.name);
  LOCKSTEP_RETURN_IF_ERROR(reader->status());
  const absl::Status status = CheckModelName(style->model, context.model);
  return status.ok() ? status : WithField(status, "model");
}

}  // namespace lockstep::openai
