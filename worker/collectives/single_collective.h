#pragma once

#include <absl/base/thread_annotations.h>
#include <absl/status/status.h>
#include <absl/synchronization/mutex.h>

#include <atomic>

#include "worker/collectives/collective.h"

namespace lockstep {

// A group of one rank.
class SingleCollective final : public Collective {
 public:
  int rank() const override { return 0; }
  int size() const override { return 1; }
  absl::Status AllReduceSum(absl::Span<float> data) override;
  absl::Status AllGather(absl::Span<const float> in,
                         absl::Span<float> out) override;
  void SetTimeout(absl::Duration) override {}  // there is nobody to wait for
  void End(const absl::Status& error) override;
  int64_t num_all_reduces() const override { return num_all_reduces_; }
  int64_t num_all_gathers() const override { return num_all_gathers_; }

 private:
  absl::Status CheckAlive();

  std::atomic<int64_t> num_all_reduces_ = 0;
  std::atomic<int64_t> num_all_gathers_ = 0;
  std::atomic<bool> aborted_ = false;
  absl::Mutex mutex_;
  absl::Status error_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace lockstep
