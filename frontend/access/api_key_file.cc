#include "frontend/access/api_key_file.h"

#include <absl/strings/ascii.h>
#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_split.h>
#include <absl/strings/strip.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "common/request_id.h"
#include "common/status_macros.h"

namespace lockstep {
namespace {

// Shorter ones can be guessed, longer ones are a mistake.
constexpr size_t kLeastKeyBytes = 16;
constexpr size_t kMostKeyBytes = 512;
constexpr int64_t kMostOfALimit = 1'000'000'000'000;
constexpr int64_t kMostPriority = 100;

// RFC 6750, section 2.1: what a Bearer token is made of.
bool IsKeyCharacter(char c) {
  return absl::ascii_isalnum(c) ||
         absl::string_view("-._~+/=").find(c) != absl::string_view::npos;
}

absl::StatusOr<SecretDigest> ParseKey(absl::string_view text) {
  if (absl::ConsumePrefix(&text, "sha256:")) return SecretDigest::FromHex(text);
  if (text.size() < kLeastKeyBytes || text.size() > kMostKeyBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("the key has ", text.size(), " characters; it must have ",
                     kLeastKeyBytes, " to ", kMostKeyBytes));
  }
  if (!std::all_of(text.begin(), text.end(), IsKeyCharacter)) {
    return absl::InvalidArgumentError(
        "the key has a character outside [A-Za-z0-9._~+/=-]");
  }
  return SecretDigest::Of(text);
}

absl::Status ParseLimit(absl::string_view text, KeyLimits* limits) {
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(text, absl::MaxSplits('=', 1));
  const auto& [name, value] = parts;
  int64_t* const limit =
      name == "concurrent_requests"   ? &limits->concurrent_requests
      : name == "requests_per_minute" ? &limits->requests_per_minute
      : name == "tokens_per_minute"   ? &limits->tokens_per_minute
                                      : nullptr;
  const bool is_priority = name == "priority_floor";
  if (limit == nullptr && !is_priority) {
    return absl::InvalidArgumentError(
        "what follows the key must be concurrent_requests=N, "
        "requests_per_minute=N, tokens_per_minute=N, priority_floor=N or "
        "may_drain");
  }
  const int64_t least = is_priority ? -kMostPriority : 1;
  const int64_t most = is_priority ? kMostPriority : kMostOfALimit;
  int64_t number = 0;
  if (!absl::SimpleAtoi(value, &number) || number < least || number > most) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, " must be ", least, " to ", most));
  }
  if (is_priority) {
    limits->priority_floor = static_cast<int32_t>(number);
  } else {
    *limit = number;
  }
  return absl::OkStatus();
}

absl::StatusOr<ApiKey> ParseLine(const std::vector<absl::string_view>& words) {
  if (words.size() < 2) {
    return absl::InvalidArgumentError("it must have a name and a key");
  }
  if (!CheckRequestId("", words[0]).ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the name must be 1 to ", kMaxRequestIdBytes,
                     " characters of [A-Za-z0-9._-]"));
  }
  ApiKey key;
  key.name = std::string(words[0]);
  LOCKSTEP_ASSIGN_OR_RETURN(key.digest, ParseKey(words[1]));
  for (size_t i = 2; i < words.size(); ++i) {
    if (words[i] == "may_drain") {
      key.may_drain = true;
    } else {
      LOCKSTEP_RETURN_IF_ERROR(ParseLimit(words[i], &key.limits));
    }
  }
  return key;
}

absl::Status CheckIsNew(const ApiKey& key, const std::vector<ApiKey>& known,
                        std::set<std::string>* names) {
  if (!names->insert(key.name).second) {
    return absl::InvalidArgumentError("the name is there twice");
  }
  const bool is_known = std::any_of(
      known.begin(), known.end(),
      [&key](const ApiKey& other) { return other.digest.Matches(key.digest); });
  if (!is_known) return absl::OkStatus();
  return absl::InvalidArgumentError("the key is there twice");
}

absl::Status AtLine(int line, const absl::Status& status) {
  return absl::InvalidArgumentError(absl::StrCat(
      "line ", line, " of --api_keys_file: ", status.message(), "."));
}

}  // namespace

absl::StatusOr<std::vector<ApiKey>> ParseApiKeys(absl::string_view text) {
  std::vector<ApiKey> keys;
  std::set<std::string> names;
  int number = 0;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    line = line.substr(0, line.find('#'));
    const std::vector<absl::string_view> words =
        absl::StrSplit(line, absl::ByAnyChar(" \t\r"), absl::SkipEmpty());
    if (words.empty()) continue;
    auto key = ParseLine(words);
    if (!key.ok()) return AtLine(number, key.status());
    if (const auto fresh = CheckIsNew(*key, keys, &names); !fresh.ok()) {
      return AtLine(number, fresh);
    }
    keys.push_back(*std::move(key));
    if (keys.size() > kMostApiKeys) {
      return AtLine(number,
                    absl::InvalidArgumentError(absl::StrCat(
                        "there are more than ", kMostApiKeys, " keys")));
    }
  }
  if (!keys.empty()) return keys;
  return absl::InvalidArgumentError(
      "--api_keys_file holds no key; with none nobody could ask anything.");
}

}  // namespace lockstep
