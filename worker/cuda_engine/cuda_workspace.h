#pragma once

#include <absl/status/status.h>

#include <cstdint>
#include <memory>

#include "worker/cuda_engine/cuda_decoder.h"
#include "worker/cuda_engine/device_activations.h"
#include "worker/cuda_engine/sampling/device_sampler.h"
#include "worker/cuda_engine/staged_batch.h"
#include "worker/device/cuda_stream.h"
#include "worker/device/device_arena.h"
#include "worker/device/device_layout.h"
#include "worker/device/pinned_memory.h"
#include "worker/model_spec/model_config.h"
#include "worker/model_spec/shard.h"

namespace lockstep {

// All that a rank's steps need besides weights and KV pages: device memory for
// activations, batch and positions, and page-locked memory for what comes back,
// of kFlights steps where these are in flight. T is of the activations.
//
//   CudaWorkspace<float> workspace(config, shard, limits);
//   …workspace.bytes() are budgeted…
//   LOCKSTEP_RETURN_IF_ERROR(workspace.Allocate(stream));
//
// Device and stream outlive it.
template <typename T>
class CudaWorkspace {
 public:
  static constexpr int kFlights = 2;

  struct Limits {
    int positions = 0;  // of a sequence
    int page_size = 0;
    int tokens = 0;  // of a step
    int sequences = 0;
    int logits_rows = 0;
  };

  CudaWorkspace(const ModelConfig& config, const Shard& shard,
                const Limits& limits);

  // Of device memory.
  int64_t bytes() const { return layout_.bytes(); }

  absl::Status Allocate(CudaStream* stream);

  // After Allocate.
  const DeviceActivations<T>& activations() const { return activations_; }
  const DeviceRopes& rope() const { return rope_; }
  StagedBatch& batch() { return batch_; }
  DeviceSampler& sampler() { return sampler_; }
  // Of two steps in flight the host makes something of logits and hidden states
  // of one at most.
  float* host_logits() const;            // [logits_rows, vocab_size]
  uint32_t* host_ids(int flight) const;  // [logits_rows]
  float* host_hidden_states() const;     // [tokens, hidden_size]

 private:
  absl::Status FillRope(const RopeConfig& config, const DeviceRope& rope,
                        CudaStream* stream);

  const ModelConfig& config_;
  const Limits limits_;
  DeviceLayout layout_;
  DeviceActivations<T> activations_;
  StagedBatch batch_;
  DeviceSampler sampler_;
  DeviceRopes rope_;
  std::unique_ptr<DeviceArena> arena_;
  std::unique_ptr<PinnedMemory> logits_, ids_[kFlights], hidden_states_;
};

}  // namespace lockstep
