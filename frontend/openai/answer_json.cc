#include "frontend/openai/answer_json.h"

#include <absl/strings/escaping.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/string_view.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstddef>
#include <utility>

namespace lockstep::openai {

// Of a call of the tool that was named, OpenAI's says that it stopped.
const char* FinishReasonName(const AnswerStyle& style,
                             const FinishEvent& finish) {
  if (finish.awaits_tools && !style.names_tool) {
    return style.calls_function ? "function_call" : "tool_calls";
  }
  return finish.reason == v1::LENGTH ? "length" : "stop";
}

Json StopReason(const AnswerStyle& style, const FinishEvent& finish) {
  if (finish.stop_string.has_value()) return *finish.stop_string;
  const auto& ids = style.stop_token_ids;
  if (finish.stop_token_id.has_value() &&
      std::find(ids.begin(), ids.end(), *finish.stop_token_id) != ids.end()) {
    return *finish.stop_token_id;
  }
  return nullptr;
}

Json UsageJson(const UsageSums& sums) {
  return {{"prompt_tokens", sums.prompt_tokens},
          {"completion_tokens", sums.completion_tokens},
          {"total_tokens", sums.prompt_tokens + sums.completion_tokens},
          {"prompt_tokens_details", {{"cached_tokens", sums.cached_tokens}}},
          {"completion_tokens_details",
           {{"reasoning_tokens", sums.reasoning_tokens}}}};
}

void AddCall(const AnswerStyle& style, const ToolCallDelta& call,
             Json* message) {
  Json function = Json::object();
  if (!call.name.empty()) function["name"] = call.name;
  function["arguments"] = call.arguments;
  if (style.calls_function) {
    (*message)["function_call"] = std::move(function);
    return;
  }
  Json json = Json::object();
  if (style.stream) json["index"] = call.index;
  if (!call.id.empty()) {
    json["id"] = call.id;
    json["type"] = "function";
  }
  json["function"] = std::move(function);
  (*message)["tool_calls"].push_back(std::move(json));
}

Json Envelope(const AnswerStyle& style) {
  const char* object = style.endpoint == kCompletions ? "text_completion"
                       : style.stream                 ? "chat.completion.chunk"
                                                      : "chat.completion";
  return {{"id", style.id},
          {"object", object},
          {"created", style.created_s},
          {"model", style.model},
          {"system_fingerprint",
           style.fingerprint.empty() ? Json() : Json(style.fingerprint)}};
}

void AppendEmbedding(const v1::Embedding& embedding, bool as_base64,
                     std::string* json) {
  static_assert(std::endian::native == std::endian::little);
  const auto& values = embedding.values();
  if (as_base64) {
    const absl::string_view bytes(reinterpret_cast<const char*>(values.data()),
                                  values.size() * sizeof(float));
    absl::StrAppend(json, "\"", absl::Base64Escape(bytes), "\"");
    return;
  }
  constexpr size_t kMostCharacters = 16;  // of a float
  const char* separator = "[";
  for (const float value : values) {
    char text[kMostCharacters];
    const auto written = std::to_chars(text, text + sizeof(text), value);
    absl::StrAppend(json, std::exchange(separator, ","),
                    absl::string_view(text, written.ptr - text));
  }
  absl::StrAppend(json, values.empty() ? "[]" : "]");
}

std::string Dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace lockstep::openai
