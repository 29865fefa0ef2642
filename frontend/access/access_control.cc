#include "frontend/access/access_control.h"

#include <absl/strings/ascii.h>
#include <absl/strings/match.h>

#include <chrono>
#include <map>
#include <optional>
#include <utility>

#include "common/error_reason.h"
#include "common/status_macros.h"

namespace lockstep {
namespace {

// RFC 6750, section 2.1; empty where there is none.
absl::string_view BearerToken(absl::string_view authorization) {
  constexpr absl::string_view kScheme = "Bearer ";
  if (!absl::StartsWithIgnoreCase(authorization, kScheme)) return "";
  return absl::StripAsciiWhitespace(authorization.substr(kScheme.size()));
}

}  // namespace

AccessControl::AccessControl(KeyAccount::Clock clock)
    : clock_(std::move(clock)) {}

absl::Time AccessControl::SteadyNow() {
  return absl::UnixEpoch() +
         absl::FromChrono(std::chrono::steady_clock::now().time_since_epoch());
}

void AccessControl::SetKeys(const std::vector<ApiKey>& keys) {
  absl::MutexLock lock(&mutex_);
  std::map<std::string, std::shared_ptr<KeyAccount>> accounts;
  for (Entry& entry : entries_) {
    accounts.emplace(entry.account->name(), entry.account);
  }
  needs_key_ = true;
  entries_.clear();
  for (const ApiKey& key : keys) {
    auto& account = accounts[key.name];
    if (account == nullptr) {
      account = std::make_shared<KeyAccount>(key.name, clock_);
    }
    account->SetLimits(key.limits);
    entries_.push_back({key.digest, account, key.may_drain});
  }
}

absl::Status AccessControl::Check(absl::string_view authorization) const {
  return Find(authorization).status();
}

absl::StatusOr<std::shared_ptr<AccessGrant>> AccessControl::Enter(
    absl::string_view authorization) const {
  LOCKSTEP_ASSIGN_OR_RETURN(std::optional<Entry> entry, Find(authorization));
  if (!entry.has_value()) return nullptr;
  LOCKSTEP_RETURN_IF_ERROR(entry->account->Enter());
  return std::make_shared<AccessGrant>(std::move(entry->account));
}

absl::Status AccessControl::CheckMayDrain(
    absl::string_view authorization) const {
  LOCKSTEP_ASSIGN_OR_RETURN(const std::optional<Entry> entry,
                            Find(authorization));
  if (entry.has_value() && entry->may_drain) return absl::OkStatus();
  return absl::PermissionDeniedError(
      "draining the gateway takes an API key that has may_drain in "
      "--api_keys_file.");
}

absl::StatusOr<std::optional<AccessControl::Entry>> AccessControl::Find(
    absl::string_view authorization) const {
  {
    absl::ReaderMutexLock lock(&mutex_);
    if (!needs_key_) return std::nullopt;
  }
  const absl::string_view token = BearerToken(authorization);
  if (token.empty()) {
    ++without_key_;
    return MakeError(ErrorReason::kInvalidApiKey,
                     "an API key is needed; send it as \"Authorization: "
                     "Bearer KEY\".");
  }
  const SecretDigest given = SecretDigest::Of(token);
  std::optional<Entry> found;
  absl::ReaderMutexLock lock(&mutex_);
  // All of them, so that the time says nothing of the place.
  for (const Entry& entry : entries_) {
    if (entry.digest.Matches(given)) found = entry;
  }
  if (found.has_value()) return found;
  ++with_unknown_key_;
  return MakeError(ErrorReason::kInvalidApiKey, "the API key is not valid.");
}

}  // namespace lockstep
