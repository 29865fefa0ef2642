#pragma once

#include <absl/base/thread_annotations.h>
#include <absl/status/status.h>
#include <absl/synchronization/mutex.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "tests/testing/async_device/device_memory.h"
#include "tests/testing/async_device/device_step.h"
#include "worker/engine/engine.h"

namespace lockstep::testing {

// A twin of the engine of a device that works beside the host, without device
// and model: up to two steps in flight, and spans of different sequences run in
// any order. What a sequence must get is ContinueAlone's, as of FakeEngine.
//
//   AsyncEngine engine({.num_pages = 8, .page_size = 4}, choose);
//   engine.Launch(plan);
//   engine.Retire(&result);
//
// `choose` decides what the device does next. Without a thread, it works only
// while Launch and Retire are called, and a case can be repeated. With one it
// works at all times, after random delays.
class AsyncEngine final : public Engine {
 public:
  struct Options {
    int num_pages = 0;
    int page_size = 16;
    uint32_t vocabulary_size = 1000;
    bool has_thread = false;
    // It leaves a part of some steps to the host: see NeedsHost.
    bool host_samples = false;
  };
  // One of `n` things, from 0. The device's alone; with a thread, called on it.
  using Choose = std::function<size_t(size_t n)>;

  AsyncEngine(const Options& options, Choose choose);
  // What is in flight is dropped.
  ~AsyncEngine() override;

  int max_steps_in_flight() const override { return 2; }

  // INTERNAL for a plan that the device can not run: an id that the step before
  // does not sample for the sequence, or that its grammar needs on the host; a
  // step launched while one is in flight that the host has a part of.
  absl::Status Launch(const StepPlan& plan) override;

  // INTERNAL if a span read a page that did not hold its sequence.
  absl::Status Retire(StepResult* result) override;

 private:
  void RunThread();
  // Runs one span that can run. REQUIRES: there is one.
  void RunOne() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool HasWork() const ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  bool OldestHasRun() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return steps_.front()->left == 0;
  }
  bool HasCall() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return stops_ || HasWork();
  }

  const Options options_;
  const Choose choose_;
  DeviceMemory memory_;                 // the device's
  std::shared_ptr<DeviceStep> newest_;  // launched last

  absl::Mutex mutex_;
  // In flight, the oldest first.
  std::deque<std::shared_ptr<DeviceStep>> steps_ ABSL_GUARDED_BY(mutex_);
  bool stops_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace lockstep::testing
