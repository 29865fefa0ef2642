#pragma once

#include <absl/status/statusor.h>
#include <absl/time/time.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace lockstep::testing {

// Joins network interfaces as a hub does, but late, and not every frame: what
// comes in at one leaves at all others, `delay` later, or not at all.
//
//   auto hub = LossyHub::Start({"h0", "h1"}, {.loss = 0.01, .delay = …});
//
// In place of the kernel's netem, which not every kernel has. Frames of one
// interface keep their order. The destructor ends it.
class LossyHub {
 public:
  struct Options {
    double loss = 0;  // of the frames
    absl::Duration delay;
    uint32_t seed = 1;
  };

  // Of the namespace of the calling thread. What sends to the interfaces must
  // write checksums, and no frames longer than 1514 bytes, itself.
  static absl::StatusOr<std::unique_ptr<LossyHub>> Start(
      const std::vector<std::string>& interfaces, const Options& options);

  ~LossyHub();

  int64_t num_lost() const { return num_lost_; }

 private:
  using Clock = std::chrono::steady_clock;

  struct Frame {
    Clock::time_point due;
    int from = 0;
    std::string bytes;
  };

  explicit LossyHub(const Options& options);
  void Run();
  void Receive(int port);
  void SendDue();

  const Options options_;
  int stop_event_ = -1;
  std::vector<int> ports_;  // packet sockets
  std::deque<Frame> frames_;
  std::mt19937 random_;
  std::atomic<int64_t> num_lost_ = 0;
  std::thread thread_;  // "hub"
};

}  // namespace lockstep::testing
