#pragma once

#include <chrono>

namespace lockstep::bench {

// What one client of the serving bench does, in process (serveN) and over gRPC
// alike: `rounds` requests, each as soon as the one before is answered. Client
// i begins i staggers after the first.
struct Traffic {
  int clients = 32;
  int prompt_tokens = 128;
  int output_tokens = 128;
  int rounds = 3;
  std::chrono::milliseconds stagger{20};
};

}  // namespace lockstep::bench
