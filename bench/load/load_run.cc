#include "bench/load/load_run.h"

#include <absl/strings/str_cat.h>

#include <utility>

#include "common/status_macros.h"
#include "common/strict_json.h"

namespace lockstep::bench {
namespace {

using nlohmann::json;

json ToJson(const Record& record) {
  return json::array({record.due_s, record.first_s, record.end_s,
                      record.prompt_tokens, record.tokens, record.error});
}

bool FromJson(const json& cells, Record* record) {
  if (!cells.is_array() || cells.size() != 6) return false;
  for (int i = 0; i < 5; ++i) {
    if (!cells[i].is_number()) return false;
  }
  if (!cells[5].is_string()) return false;
  *record = {.due_s = cells[0],
             .first_s = cells[1],
             .end_s = cells[2],
             .prompt_tokens = cells[3],
             .tokens = cells[4],
             .error = cells[5]};
  return true;
}

}  // namespace

json ToJson(const LoadRun& run) {
  json records = json::array();
  for (const Record& record : run.records) records.push_back(ToJson(record));
  return {{"label", run.label},
          {"options", run.options},
          {"seconds", run.seconds},
          {"columns",
           {"due_s", "first_s", "end_s", "prompt_tokens", "tokens", "error"}},
          {"requests", records},
          {"inter_token", run.inter_token.ToJson()}};
}

absl::StatusOr<LoadRun> ParseRun(absl::string_view text,
                                 const std::string& name) {
  LOCKSTEP_ASSIGN_OR_RETURN(const json parsed, ParseStrictJson(text, name));
  const auto wrong = [&name](absl::string_view what) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, ": ", what, "; it is not what --out has written."));
  };
  if (!parsed.is_object() || !parsed.contains("label") ||
      !parsed["label"].is_string() || !parsed.contains("seconds") ||
      !parsed["seconds"].is_number() || !parsed.contains("requests") ||
      !parsed["requests"].is_array() || !parsed.contains("inter_token") ||
      !parsed["inter_token"].is_object()) {
    return wrong("label, seconds, requests or inter_token are missing");
  }
  LoadRun run;
  run.label = parsed["label"];
  run.options = parsed.value("options", json::object());
  run.seconds = parsed["seconds"];
  for (const json& cells : parsed["requests"]) {
    if (!FromJson(cells, &run.records.emplace_back())) {
      return wrong(
          absl::StrCat("request ", run.records.size(), " is ", cells.dump()));
    }
  }
  run.inter_token = Histogram::FromJson(parsed["inter_token"]);
  return run;
}

}  // namespace lockstep::bench
