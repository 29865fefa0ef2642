#pragma once

#include <absl/status/status.h>
#include <absl/strings/string_view.h>

#include "kernels/cuda/cuda_types.h"
#include "kernels/expert_rule.h"
#include "worker/cuda_engine/device_activations.h"
#include "worker/cuda_engine/weights/device_weights.h"
#include "worker/device/cuda_stream.h"
#include "worker/model_spec/model_config.h"
#include "worker/model_spec/shard.h"

namespace lockstep {

// A mixture of experts on a device, as ExpertsBlock is on the CPU: each token
// goes through the experts that a router likes best, and the shared one. The
// host does not learn which these are: kernels are launched for as many rows
// and tiles as there may be. T is as CudaDecoder's.
//
//   LOCKSTEP_RETURN_IF_ERROR(experts.Launch(layer, tokens));
//   …activations.delta is summed over the ranks…
//
// A token's bits do not depend on who else goes to its experts. Ranks that have
// a part of each expert, or whole ones, add what theirs come to. Used by the
// engine's thread.
template <typename T>
class CudaExperts {
 public:
  // All of it outlives this.
  CudaExperts(const ModelConfig* config, const Shard* shard,
              const DeviceActivations<T>* activations, CudaStream* stream);

  // delta = this rank's part of what the layer's experts make of normed, which
  // is the norm of hidden.
  absl::Status Launch(const DeviceLayer& layer, int tokens);

 private:
  absl::Status Route(const DeviceLayer& layer, int tokens);
  absl::Status SortRows(int tokens, int tile_rows);
  absl::Status MultiplyExperts(const DeviceExperts& weights, int tokens,
                               int tile_rows);
  absl::Status MultiplyShared(const DeviceExperts& weights, int tokens);
  absl::Status Gate(int rows, int intermediate);
  absl::Status Sum(int tokens);
  absl::Status Check(cuda::CudaError launched, absl::string_view kernel) const {
    return stream_->device().Check(launched, kernel);
  }

  const ModelConfig& config_;
  const Shard& shard_;
  const DeviceActivations<T>& activations_;
  CudaStream* const stream_;
  const kernels::ExpertRule rule_;
};

}  // namespace lockstep
