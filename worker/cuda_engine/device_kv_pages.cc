#include "worker/cuda_engine/device_kv_pages.h"

#include <cstddef>

#include "common/status_macros.h"
#include "kernels/cuda/cuda_types.h"
#include "worker/device/device_layout.h"

namespace lockstep {
namespace {

// Values of the keys of one page of one layer; it has as many values.
size_t PageValues(const ModelConfig& config, const Shard& shard,
                  int page_size) {
  return size_t{1} * shard.num_kv_heads() * page_size * config.head_dim;
}

}  // namespace

template <typename T>
absl::StatusOr<std::unique_ptr<DeviceKvPages<T>>> DeviceKvPages<T>::Create(
    const CudaDevice* device, const ModelConfig& config, const Shard& shard,
    int num_pages, int page_size) {
  std::unique_ptr<DeviceKvPages> pages(new DeviceKvPages());
  pages->layers_.resize(config.num_layers);
  const size_t values = num_pages * PageValues(config, shard, page_size);
  DeviceLayout layout;
  for (cuda::PagedKv<T>& layer : pages->layers_) {
    layer.num_kv_heads = shard.num_kv_heads();
    layer.page_size = page_size;
    layer.head_dim = config.head_dim;
    layout.Add("a layer's keys", values, &layer.keys);
    layout.Add("a layer's values", values, &layer.values);
  }
  LOCKSTEP_ASSIGN_OR_RETURN(
      pages->arena_, DeviceArena::Create(device, "KV pages", layout.bytes()));
  LOCKSTEP_RETURN_IF_ERROR(layout.PlaceIn(pages->arena_.get()));
  return pages;
}

template <typename T>
int64_t DeviceKvPages<T>::PageBytes(const ModelConfig& config,
                                    const Shard& shard, int page_size) {
  return 2 * config.num_layers * sizeof(T) *
         PageValues(config, shard, page_size);
}

template class DeviceKvPages<float>;
template class DeviceKvPages<cuda::BFloat16>;

}  // namespace lockstep
