#pragma once

#include <absl/base/thread_annotations.h>
#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>
#include <absl/synchronization/mutex.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "frontend/access/api_key.h"
#include "frontend/access/key_account.h"

namespace lockstep {

// Who may ask, and how much: the one place that decides, for HTTP and gRPC
// alike; neither protocol is known here.
//
//   AccessControl access;
//   access.SetKeys(keys);  // before that no key is needed
//   LOCKSTEP_ASSIGN_OR_RETURN(const auto grant, access.Enter("Bearer …"));
//
// Any thread. Grants may outlive it.
class AccessControl {
 public:
  // For limits of a minute; by default one that nobody sets.
  explicit AccessControl(KeyAccount::Clock clock = SteadyNow);

  // In place of those before. A name that stays keeps what it has in use.
  void SetKeys(const std::vector<ApiKey>& keys);

  // How many were refused since they showed no key, or one that is none of
  // ours.
  uint64_t without_key() const { return without_key_; }
  uint64_t with_unknown_key() const { return with_unknown_key_; }

  // `authorization` is the value of the field of that name; empty: there is
  // none. UNAUTHENTICATED, in words that tell nothing of the keys there are.
  absl::Status Check(absl::string_view authorization) const;

  // Check, and that the key may drain the gateway: PERMISSION_DENIED otherwise,
  // and where no key is needed, as nobody is known then.
  absl::Status CheckMayDrain(absl::string_view authorization) const;

  // Check, and a place within the key's limits: RESOURCE_EXHAUSTED otherwise.
  // Null where no key is needed.
  absl::StatusOr<std::shared_ptr<AccessGrant>> Enter(
      absl::string_view authorization) const;

 private:
  struct Entry {
    SecretDigest digest;
    std::shared_ptr<KeyAccount> account;
    bool may_drain = false;
  };

  static absl::Time SteadyNow();
  // None where no key is needed.
  absl::StatusOr<std::optional<Entry>> Find(
      absl::string_view authorization) const;

  const KeyAccount::Clock clock_;
  mutable std::atomic<uint64_t> without_key_ = 0;
  mutable std::atomic<uint64_t> with_unknown_key_ = 0;
  mutable absl::Mutex mutex_;
  bool needs_key_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<Entry> entries_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace lockstep
