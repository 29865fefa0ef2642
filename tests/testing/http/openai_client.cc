#include "tests/testing/http/openai_client.h"

#include <absl/strings/str_split.h>
#include <absl/strings/strip.h>

#include <map>
#include <utility>

namespace lockstep::testing {
namespace {

using nlohmann::json;

// Strings and lists grow, all else is replaced.
void Merge(const json& news, json* sum) {
  for (const auto& [key, value] : news.items()) {
    json& old = (*sum)[key];
    if ((old.is_null() && key != "tool_calls") || value.is_null()) {
      if (!value.is_null()) old = value;
    } else if (value.is_string() && key != "role") {
      old = old.get<std::string>() + value.get<std::string>();
    } else if (key == "tool_calls") {
      for (json part : value) {
        json& call = old[part["index"].get<size_t>()];
        part.erase("index");
        Merge(part, &call);
      }
    } else if (value.is_array()) {
      old.insert(old.end(), value.begin(), value.end());
    } else if (value.is_object()) {
      Merge(value, &old);
    } else {
      old = value;
    }
  }
}

}  // namespace

OpenAiAnswer PostJson(int port, const std::string& path, const json& request,
                      const std::string& fields) {
  const RawResponse response = Fetch(port, path, request.dump(), fields);
  OpenAiAnswer answer;
  answer.status = response.status;
  answer.head = response.head;
  if (response.Field("content-type") != "text/event-stream; charset=utf-8") {
    answer.json = json::parse(response.body, nullptr, false);
    return answer;
  }
  for (absl::string_view event : absl::StrSplit(response.body, "\n\n")) {
    if (!absl::ConsumePrefix(&event, "data: ")) continue;
    answer.done = event == "[DONE]";
    if (!answer.done) answer.events.push_back(json::parse(event));
  }
  return answer;
}

json Accumulate(const std::vector<json>& events) {
  json whole;
  std::map<int, json> choices;
  for (json event : events) {
    for (json choice : event["choices"]) {
      json& sum = choices[choice["index"].get<int>()];
      sum["index"] = choice["index"];
      choice.erase("index");
      if (choice.contains("delta")) {
        choice["message"] = choice["delta"];
        choice.erase("delta");
      }
      // Null until the end, and there once.
      for (const char* key : {"logprobs", "finish_reason", "stop_reason"}) {
        if (!sum.contains(key)) sum[key] = nullptr;
      }
      Merge(choice, &sum);
    }
    event.erase("choices");
    for (const auto& [key, value] : event.items()) {
      if (!value.is_null() || !whole.contains(key)) whole[key] = value;
    }
  }
  whole["choices"] = json::array();
  for (auto& [index, choice] : choices) {
    if (choice.contains("message")) {
      json& message = choice["message"];
      message["refusal"] = nullptr;
      // A stream does not know at first that nothing will be said.
      const bool has_more =
          message.contains("tool_calls") || message.contains("reasoning");
      if (message["content"] == "" && has_more) message["content"] = nullptr;
    }
    whole["choices"].push_back(std::move(choice));
  }
  return whole;
}

}  // namespace lockstep::testing
