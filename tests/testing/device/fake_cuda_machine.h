#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <random>
#include <string>

// What the fake driver's calls share.
namespace lockstep::fake_cuda {

struct CUstream_st;

inline constexpr int kSuccess = 0;
inline constexpr int kInvalidValue = 1;
inline constexpr int kOutOfMemory = 2;
inline constexpr int kNoDevice = 100;
inline constexpr int kInvalidContext = 201;
inline constexpr int kNotReady = 600;
inline constexpr int kIllegalAddress = 700;

// What a test may set.
struct Settings {
  int devices = 1;
  int version = 13000;
  int64_t total = 1 << 30;
  bool held = false;
  int most_us = 0;
  std::minstd_rand random;
  std::string failing;
  int fails_in = 0, code = 0;
  std::string failed;                  // the first call that did
  int broken = 0;                      // by a kernel: what every call returns
  int nccl_rank = -1, nccl_error = 0;  // whose communicator fails, and how
  void (*touches)(void*) = nullptr;    // told of NCCL's tensors
  void* touched = nullptr;
};

// Of a device, or page-locked.
struct Allocation {
  size_t bytes = 0;
  int device = 0;
};

// One lock for all of it: this is no place to be fast.
struct Machine : Settings {
  std::mutex mutex;
  std::condition_variable changed;
  int64_t used = 0;
  std::map<void*, Allocation> allocations, page_locked;
  int alive = 0;               // contexts, streams, events, communicators
  std::map<int, int> pending;  // work on the streams of each device
};

Machine& machine();

// The device whose context this thread has; none: negative.
inline constexpr int kNone = -1;
inline thread_local int current = kNone;

// Under the lock: what a call returns before it has done anything.
int Enter(const char* call);

// Runs `then` under the lock, unless the call fails.
template <typename Then>
int Call(const char* call, Then then) {
  std::unique_lock lock(machine().mutex);
  if (const int error = Enter(call); error != kSuccess) return error;
  return then(lock);
}

// Memory is freed when nothing runs on its device, as CUDA does. What runs on
// another device is not waited for: it may need this one to go on.
inline void AwaitDevice(int device, std::unique_lock<std::mutex>& lock) {
  machine().changed.wait(lock, [=] { return machine().pending[device] == 0; });
}

// Puts work on a stream.
int Enqueue(const char* call, CUstream_st* stream, std::function<void()> work);

}  // namespace lockstep::fake_cuda
