#include <utility>

#include "bench/gateway/streams.h"

namespace lockstep::bench {

void StreamsRecorder::OnTokens(size_t stream, size_t number,
                               const SentTimes& sent) {
  const SteadyClock::time_point now = SteadyClock::now();
  if (result_.tokens == 0) first_ = now;
  last_ = now;
  result_.tokens += number;
  for (size_t i = 0; i < number && read_[stream] < sent.tokens(); ++i) {
    result_.latency_s.push_back(
        sent.SecondsSince(stream, read_[stream]++, now));
  }
}

StreamsResult StreamsRecorder::Take() {
  result_.seconds = std::chrono::duration<double>(last_ - first_).count();
  return std::move(result_);
}

}  // namespace lockstep::bench
