#pragma once

#include <absl/status/statusor.h>
#include <absl/types/span.h>

#include <cstdint>
#include <functional>
#include <memory>

#include "kernels/threads/thread_pool.h"
#include "kernels/weights/arithmetic.h"
#include "worker/collectives/nccl_collective.h"
#include "worker/cuda_engine/cuda_engine_options.h"
#include "worker/device/cuda_stream.h"
#include "worker/engine/engine.h"
#include "worker/model_spec/model_config.h"
#include "worker/model_spec/shard.h"
#include "worker/weights/model_files.h"

namespace lockstep {

// The engine of one rank on a GPU: weights, KV pages and activations are in its
// memory, and a step is a list of kernels on one stream. Tokens are chosen
// there, and the next step reads them there. Where DeviceSampler has no room
// for a row's penalties, its logits come back and are sampled on the host, as
// on the CPU.
//
// Two steps may be in flight, but none launched behind one that the host has a
// part of: see NeedsHost and SchedulerOptions::host_samples.
//
//   LOCKSTEP_ASSIGN_OR_RETURN(
//       auto engine, CudaEngine::Create(model, shard, options, pool, stream,
//       collective));
//
// Strict arithmetic keeps activations, keys and values in fp32, fast in bf16;
// sums are fp32 in both, and a row's bits depend on its own sequence alone.
// Every error names the call or kernel, and the device.
class CudaEngine : public Engine {
 public:
  using Options = CudaEngineOptions;

  // As ModelEngine::LogitsObserver.
  using LogitsObserver = std::function<void(
      const SequenceSpan& span, int position, absl::Span<const float> logits)>;

  // UNIMPLEMENTED for a model that CheckCudaModel refuses. `model`, `pool`,
  // whose threads sample, the stream, whose device is current, and
  // `collective`, which exchanges its memory, must outlive the engine; the last
  // is null for one rank. An engine that is destroyed with steps in flight
  // aborts it.
  static absl::StatusOr<std::unique_ptr<CudaEngine>> Create(
      const ModelFiles& model, const Shard& shard, const Options& options,
      kernels::ThreadPool* pool, CudaStream* stream,
      NcclCollective* collective);

  // While one is set, steps are launched one at a time.
  virtual void set_logits_observer(LogitsObserver observer) = 0;

  // Bytes of one KV page on this rank, all layers.
  static int64_t PageBytes(const ModelConfig& config, const Shard& shard,
                           int page_size, kernels::Arithmetic arithmetic);

  // What an engine takes of the device besides weights and KV pages.
  static int64_t WorkspaceBytes(const ModelConfig& config, const Shard& shard,
                                const Options& options);
};

}  // namespace lockstep
