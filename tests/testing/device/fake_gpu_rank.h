#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <absl/time/time.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "worker/collectives/single_collective.h"
#include "worker/cuda_engine/gpu_rank.h"

namespace lockstep::testing {

// A rank on a GPU without one: keeps what it is asked, and computes nothing.
class FakeGpuRank final : public GpuRank {
 public:
  // That rank 0's collective has.
  explicit FakeGpuRank(std::string id) : id_(std::move(id)) {}

  const std::string& name() const override { return name_; }
  int64_t PageBytes(const ModelFiles&, const Shard&,
                    const CudaEngineOptions&) const override {
    return 1 << 10;
  }
  absl::StatusOr<int64_t> KvMemoryBytes(const ModelFiles&, const Shard&,
                                        const CudaEngineOptions&,
                                        double) const override {
    return 1 << 20;
  }
  absl::StatusOr<std::string> OpenCollective(
      const CollectiveOptions& options) override {
    opened = options;
    return options.rank == 0 ? id_ : "";
  }
  absl::Status MeetRanks(const std::string& id,
                         absl::Duration timeout) override {
    met_by = id;
    float value = 1;
    collective_.SetTimeout(timeout);
    return collective_.AllReduceSum({&value, 1});
  }
  void CloseCollective() override { is_closed = true; }
  Collective* collective() override { return &collective_; }
  absl::StatusOr<std::unique_ptr<Engine>> MakeEngine(
      const ModelFiles&, const Shard&, const CudaEngineOptions&,
      kernels::ThreadPool*) override {
    return absl::UnimplementedError("a fake has no engine");
  }

  CollectiveOptions opened;
  std::string met_by;
  bool is_closed = false;

 private:
  const std::string name_ = "device 0 (no GPU)";
  const std::string id_;
  SingleCollective collective_;
};

}  // namespace lockstep::testing
