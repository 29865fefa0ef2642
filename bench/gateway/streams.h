#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "bench/gateway/sent_times.h"

namespace lockstep::bench {

struct StreamsOptions {
  std::string target;  // host:port
  int streams = 64;
  uint32_t tokens = 1000;  // of each
  // From the start of one stream to that of the next.
  SteadyClock::duration stagger = SteadyClock::duration::zero();
};

struct StreamsResult {
  double seconds = 0;  // from the first token to the last
  int64_t tokens = 0;
  std::vector<double> latency_s;  // of each token, from its worker to here
};

// Each asks for all the streams at once, stream i with the seed i, and reads
// them on this thread to their ends. Any stream that fails is the error of the
// whole.
absl::StatusOr<StreamsResult> StreamFromWorker(const StreamsOptions& options,
                                               const SentTimes& sent);
absl::StatusOr<StreamsResult> StreamOverGrpc(const StreamsOptions& options,
                                             const SentTimes& sent);
absl::StatusOr<StreamsResult> StreamOverHttp(const StreamsOptions& options,
                                             const SentTimes& sent);

// Puts a result together, token by token.
class StreamsRecorder {
 public:
  explicit StreamsRecorder(int streams) : read_(streams) {}

  void OnTokens(size_t stream, size_t number, const SentTimes& sent);
  StreamsResult Take();

 private:
  std::vector<size_t> read_;  // tokens of each stream
  SteadyClock::time_point first_;
  SteadyClock::time_point last_;
  StreamsResult result_;
};

}  // namespace lockstep::bench
