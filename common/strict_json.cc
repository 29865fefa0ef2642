#include "common/strict_json.h"

#include <absl/strings/escaping.h>
#include <absl/strings/str_cat.h>

#include <set>
#include <utility>
#include <vector>

#include "common/mapped_file.h"
#include "common/status_macros.h"
#include "common/utf8.h"

namespace lockstep {
namespace {

using nlohmann::json;

constexpr int kMaxDepth = 32;
// Of the parser's words, which quote what it was reading: a number or a string,
// however long.
constexpr size_t kMaxErrorBytes = 160;

std::string CutError(const std::string& words) {
  if (words.size() <= kMaxErrorBytes) return words;
  return RepairUtf8(words.substr(0, kMaxErrorBytes)) + "…";
}

// Watches the parser; what is too deep is dropped as it comes.
class Strictness {
 public:
  bool operator()(int depth, json::parse_event_t event, const json& parsed) {
    switch (event) {
      case json::parse_event_t::object_start:
        if (depth >= kMaxDepth) return TooDeep();
        keys_.resize(depth + 2);
        keys_[depth + 1].clear();
        return true;
      case json::parse_event_t::array_start:
        return depth < kMaxDepth || TooDeep();
      case json::parse_event_t::key: {
        // Keys come even of an object that was dropped as too deep.
        if (depth > kMaxDepth) return true;
        const auto& key = parsed.get_ref<const std::string&>();
        if (!keys_[depth].insert(key).second && error_.empty()) {
          error_ = absl::StrCat("the key \"",
                                absl::Utf8SafeCHexEscape(key.substr(0, 100)),
                                "\" is there twice");
        }
        return true;
      }
      default:
        return true;
    }
  }

  // Empty where there was none.
  const std::string& error() const { return error_; }

 private:
  bool TooDeep() {
    if (error_.empty()) {
      error_ = absl::StrCat("it is nested deeper than ", kMaxDepth, " levels");
    }
    return false;
  }

  std::vector<std::set<std::string>> keys_;  // of the open objects, by depth
  std::string error_;
};

}  // namespace

absl::StatusOr<json> ParseStrictJson(absl::string_view text,
                                     const std::string& name) {
  Strictness strictness;
  const auto watch = [&strictness](int depth, json::parse_event_t event,
                                   json& parsed) {
    return strictness(depth, event, parsed);
  };
  json value;
  try {
    value = json::parse(text.begin(), text.end(), watch);
  } catch (const json::exception& error) {
    return absl::InvalidArgumentError(absl::StrCat(
        name, " is not valid JSON: ", CutError(error.what()), "."));
  }
  if (strictness.error().empty()) return value;
  return absl::InvalidArgumentError(
      absl::StrCat(name, " is refused: ", strictness.error(), "."));
}

absl::StatusOr<json> ReadStrictJson(const std::string& path) {
  LOCKSTEP_ASSIGN_OR_RETURN(const auto file, MappedFile::Open(path));
  const auto bytes = file->bytes();
  return ParseStrictJson(
      absl::string_view(reinterpret_cast<const char*>(bytes.data()),
                        bytes.size()),
      path);
}

}  // namespace lockstep
