#include "frontend/structured_output/lark_pieces.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_replace.h>

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

// A space, or a line break with an indent, where there is any; as the worker
// has it for a schema alone.
constexpr char kJsonSpace[] = R"( |\n[ \t]{0,32})";

std::string Dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

absl::string_view WithoutAnchors(absl::string_view regex) {
  if (!regex.empty() && regex.front() == '^') regex.remove_prefix(1);
  if (regex.empty() || regex.back() != '$') return regex;
  const absl::string_view rest = regex.substr(0, regex.size() - 1);
  const size_t last = rest.find_last_not_of('\\');
  const size_t escapes =
      rest.size() - (last == absl::string_view::npos ? 0 : last + 1);
  return escapes % 2 == 0 ? rest : regex;
}

}  // namespace

// Lark wants the one control character escaped that JSON does not.
std::string LarkText(absl::string_view text) {
  return absl::StrReplaceAll(Dump(Json(std::string(text))),
                             {{"\x7f", "\\u007f"}});
}

std::string LarkRegex(absl::string_view regex) {
  std::string escaped = "/";
  regex = WithoutAnchors(regex);
  for (size_t i = 0; i < regex.size(); ++i) {
    const char c = regex[i];
    if (c == '\\' && i + 1 < regex.size()) {
      escaped += c;
      ++i;
      escaped += regex[i] == '\n' ? 'n' : regex[i];
    } else if (c == '/') {
      escaped += "\\/";
    } else if (c == '\n') {
      escaped += "\\n";
    } else {
      escaped += c;
    }
  }
  return escaped + "/";
}

std::string LarkJson(Json schema) {
  schema["x-guidance"] = {{"whitespace_pattern", kJsonSpace}};
  return absl::StrCat("%json ", Dump(schema));
}

}  // namespace lockstep
