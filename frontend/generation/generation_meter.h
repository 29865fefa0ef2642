#pragma once

#include <absl/base/thread_annotations.h>
#include <absl/status/status.h>
#include <absl/synchronization/mutex.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <string>

#include "common/metrics/histogram.h"

namespace lockstep {

// What generations were like, since the start, as the gateway saw them. What
// comes with each token takes no lock. Any thread.
class GenerationMeter {
 public:
  using Duration = std::chrono::steady_clock::duration;

  void OnStart() { ++open_; }
  // It is on its way to a group; `waited` since its start.
  void OnSend(Duration waited) { encode_.Observe(waited); }
  void OnFirstTokens(Duration waited) { first_token_.Observe(waited); }
  void OnMoreTokens(Duration since_the_last) { token_.Observe(since_the_last); }
  void OnTokens(int number) { generated_ += number; }
  // `has_tokens`: it ended in the midst of an answer, or well.
  void OnEnd(const absl::Status& status, Duration lasted, bool has_tokens,
             uint64_t prompt_tokens, uint64_t cached_tokens);

  int64_t open() const { return open_; }
  const Histogram& encode() const { return encode_; }  // seconds, all of them
  const Histogram& first_token() const { return first_token_; }
  const Histogram& token() const { return token_; }
  const Histogram& total() const { return total_; }
  uint64_t prompt_tokens() const { return prompted_; }
  uint64_t cached_tokens() const { return cached_; }
  uint64_t generated_tokens() const { return generated_; }
  // Those that ended, by the name of their status' code; those among them that
  // ended without a token, by their reason. As many as there are such names.
  std::map<std::string, uint64_t> ends() const;
  std::map<std::string, uint64_t> refusals() const;

 private:
  Histogram encode_{kShortBounds};
  Histogram first_token_{kFirstTokenBounds};
  Histogram token_{kTokenBounds};
  Histogram total_{kRequestBounds};
  std::atomic<int64_t> open_ = 0;
  std::atomic<uint64_t> prompted_ = 0;
  std::atomic<uint64_t> cached_ = 0;
  std::atomic<uint64_t> generated_ = 0;

  mutable absl::Mutex mutex_;  // once a generation
  std::map<std::string, uint64_t> ends_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, uint64_t> refusals_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace lockstep
