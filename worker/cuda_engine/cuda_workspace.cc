#include "worker/cuda_engine/cuda_workspace.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <vector>

#include "common/status_macros.h"
#include "kernels/cuda/cuda_types.h"
#include "worker/core/host_part.h"
#include "worker/layers/rope_table.h"

namespace lockstep {
namespace {

template <typename T>
DeviceSampler::Limits SamplerLimits(
    const ModelConfig& config,
    const typename CudaWorkspace<T>::Limits& limits) {
  const auto adjustments = static_cast<int>(
      limits.sequences *
      std::min<size_t>(kMostDeviceAdjustments, config.vocab_size));
  return {.vocab_size = config.vocab_size,
          .sequences = limits.sequences,
          .logits_rows = limits.logits_rows,
          .adjustments = std::max(adjustments, config.vocab_size),
          .flights = CudaWorkspace<T>::kFlights};
}

template <typename T>
StagedBatch::Limits BatchLimits(
    const ModelConfig& config, const Shard& shard,
    const typename CudaWorkspace<T>::Limits& limits) {
  std::vector<int> windows;
  for (const LayerConfig& layer : config.layers) {
    if (std::find(windows.begin(), windows.end(), layer.window) ==
        windows.end()) {
      windows.push_back(layer.window);
    }
  }
  return {.page_size = limits.page_size,
          .tokens = limits.tokens,
          .sequences = limits.sequences,
          .pages = (limits.positions + limits.page_size - 1) / limits.page_size,
          .logits_rows = limits.logits_rows,
          .heads = shard.num_heads(),
          .kv_heads = shard.num_kv_heads(),
          .head_dim = config.head_dim,
          .windows = windows};
}

bool HasLocalRope(const ModelConfig& config) {
  return std::any_of(config.layers.begin(), config.layers.end(),
                     [](const LayerConfig& layer) { return layer.local_rope; });
}

void AddRope(const RopeConfig& config, int positions, DeviceLayout* layout,
             DeviceRope* rope) {
  const size_t angles = size_t{1} * positions * config.rotary_dim / 2;
  layout->Add("cosines of positions", angles, &rope->cos);
  layout->Add("sines of positions", angles, &rope->sin);
}

}  // namespace

template <typename T>
CudaWorkspace<T>::CudaWorkspace(const ModelConfig& config, const Shard& shard,
                                const Limits& limits)
    : config_(config),
      limits_(limits),
      activations_(config, shard,
                   {.tokens = limits.tokens, .logits_rows = limits.logits_rows},
                   &layout_),
      batch_(BatchLimits<T>(config, shard, limits), &layout_),
      sampler_(SamplerLimits<T>(config, limits), &layout_) {
  AddRope(config.rope, limits.positions, &layout_, &rope_.usual);
  if (HasLocalRope(config)) {
    AddRope(config.local_rope, limits.positions, &layout_, &rope_.local);
  }
}

template <typename T>
absl::Status CudaWorkspace<T>::Allocate(CudaStream* stream) {
  const CudaDevice* const device = &stream->device();
  LOCKSTEP_ASSIGN_OR_RETURN(
      arena_, DeviceArena::Create(device, "workspaces", layout_.bytes()));
  LOCKSTEP_RETURN_IF_ERROR(layout_.PlaceIn(arena_.get()));
  LOCKSTEP_RETURN_IF_ERROR(batch_.AllocatePinned(device));
  LOCKSTEP_RETURN_IF_ERROR(sampler_.AllocatePinned(device));
  const size_t rows = limits_.logits_rows, tokens = limits_.tokens;
  LOCKSTEP_ASSIGN_OR_RETURN(
      logits_, PinnedMemory::Allocate(
                   device, rows * config_.vocab_size * sizeof(float)));
  for (auto& ids : ids_) {
    LOCKSTEP_ASSIGN_OR_RETURN(
        ids, PinnedMemory::Allocate(device, rows * sizeof(uint32_t)));
  }
  LOCKSTEP_ASSIGN_OR_RETURN(
      hidden_states_,
      PinnedMemory::Allocate(device,
                             tokens * config_.hidden_size * sizeof(float)));
  LOCKSTEP_RETURN_IF_ERROR(FillRope(config_.rope, rope_.usual, stream));
  if (!HasLocalRope(config_)) return absl::OkStatus();
  return FillRope(config_.local_rope, rope_.local, stream);
}

template <typename T>
absl::Status CudaWorkspace<T>::FillRope(const RopeConfig& config,
                                        const DeviceRope& rope,
                                        CudaStream* stream) {
  const RopeTable table(config, limits_.positions);
  const size_t bytes = RopeTable::Bytes(config, limits_.positions) / 2;
  if (bytes == 0) return absl::OkStatus();
  LOCKSTEP_ASSIGN_OR_RETURN(
      const auto staged, PinnedMemory::Allocate(&stream->device(), 2 * bytes));
  auto* const cos = static_cast<std::byte*>(staged->data());
  std::byte* const sin = cos + bytes;
  std::memcpy(cos, table.cos(), bytes);
  std::memcpy(sin, table.sin(), bytes);
  LOCKSTEP_RETURN_IF_ERROR(stream->CopyToDevice(
      reinterpret_cast<CudaApi::Address>(rope.cos), cos, bytes));
  LOCKSTEP_RETURN_IF_ERROR(stream->CopyToDevice(
      reinterpret_cast<CudaApi::Address>(rope.sin), sin, bytes));
  return stream->Synchronize();
}

template <typename T>
float* CudaWorkspace<T>::host_logits() const {
  return static_cast<float*>(logits_->data());
}

template <typename T>
uint32_t* CudaWorkspace<T>::host_ids(int flight) const {
  return static_cast<uint32_t*>(ids_[flight]->data());
}

template <typename T>
float* CudaWorkspace<T>::host_hidden_states() const {
  return static_cast<float*>(hidden_states_->data());
}

template class CudaWorkspace<float>;
template class CudaWorkspace<cuda::BFloat16>;

}  // namespace lockstep
