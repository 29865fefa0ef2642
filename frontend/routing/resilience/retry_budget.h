#pragma once

#include <algorithm>

namespace lockstep {

// Retries may be a part of all requests, so that a failing service is not asked
// twice as often as a sound one. Unused ones are saved up, to a limit: those of
// a group that dies with many requests come at once. Not thread-safe.
class RetryBudget {
 public:
  struct Options {
    double part_of_requests = 0.1;
    double most_saved = 100;
  };

  explicit RetryBudget(const Options& options)
      : options_(options), saved_(options.most_saved) {}

  void OnRequest() {
    saved_ = std::min(saved_ + options_.part_of_requests, options_.most_saved);
  }

  // False: this request is not to be tried again.
  bool Take() {
    if (saved_ < 1) return false;
    saved_ -= 1;
    return true;
  }

 private:
  const Options options_;
  double saved_;
};

}  // namespace lockstep
