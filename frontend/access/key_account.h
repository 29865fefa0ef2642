#pragma once

#include <absl/base/thread_annotations.h>
#include <absl/status/status.h>
#include <absl/synchronization/mutex.h>
#include <absl/time/time.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "frontend/access/api_key.h"
#include "frontend/access/minute_budget.h"

namespace lockstep {

// What one key has in use, under its name: it outlives a change of the key.
// Any thread.
class KeyAccount {
 public:
  using Clock = std::function<absl::Time()>;  // does not go back

  KeyAccount(std::string name, Clock clock)
      : name_(std::move(name)), clock_(std::move(clock)) {}

  const std::string& name() const { return name_; }
  int32_t priority_floor() const;

  void SetLimits(const KeyLimits& limits);

  // Takes a place, which Leave gives back. RESOURCE_EXHAUSTED names the key,
  // the limit and when to try again.
  absl::Status Enter();
  void Leave();
  void SpendTokens(int64_t tokens);

 private:
  const std::string name_;
  const Clock clock_;

  mutable absl::Mutex mutex_;
  KeyLimits limits_ ABSL_GUARDED_BY(mutex_);
  int64_t running_ ABSL_GUARDED_BY(mutex_) = 0;
  MinuteBudget requests_ ABSL_GUARDED_BY(mutex_);
  MinuteBudget tokens_ ABSL_GUARDED_BY(mutex_);
};

// A request's leave to run, given back by Release or the destructor. Any
// thread.
class AccessGrant {
 public:
  explicit AccessGrant(std::shared_ptr<KeyAccount> account)  // after Enter
      : account_(std::move(account)) {}
  ~AccessGrant() { Release(); }
  AccessGrant(const AccessGrant&) = delete;
  AccessGrant& operator=(const AccessGrant&) = delete;

  const std::string& key_name() const { return account_->name(); }
  int32_t priority_floor() const { return account_->priority_floor(); }
  // Of its prompt or its answer, as they become known.
  void SpendTokens(int64_t tokens) { account_->SpendTokens(tokens); }

  // Before the client is told the end, so that it may ask again at once.
  void Release() {
    if (!released_.exchange(true)) account_->Leave();
  }

 private:
  const std::shared_ptr<KeyAccount> account_;
  std::atomic<bool> released_ = false;
};

// `then`, with the grant released before it is called; null: there is none.
template <typename Then>
auto AfterRelease(std::shared_ptr<AccessGrant> grant, Then then) {
  return [grant = std::move(grant), then = std::move(then)](auto result) {
    if (grant != nullptr) grant->Release();
    then(std::move(result));
  };
}

}  // namespace lockstep
