#pragma once

#include <absl/status/statusor.h>
#include <absl/types/span.h>

#include <cstddef>
#include <memory>
#include <vector>

#include "kernels/attention/kv_type.h"
#include "kernels/attention/paged_kv.h"
#include "worker/model_spec/model_config.h"
#include "worker/model_spec/shard.h"

namespace lockstep {

// The memory of one rank's KV pages, all layers: one mapping, of which the
// system provides what is written. Fixed for the life of the engine.
//
//   [layer][keys, values, key scales, value scales], each laid out as
//   kernels/attention/paged_kv.h says; scales only where the type has them
class KvMemory {
 public:
  // RESOURCE_EXHAUSTED when the address space can not be had.
  static absl::StatusOr<std::unique_ptr<KvMemory>> Create(
      const ModelConfig& config, const Shard& shard, int num_pages,
      int page_size, kernels::KvType type = kernels::KvType::kF32);

  ~KvMemory();
  KvMemory(const KvMemory&) = delete;
  KvMemory& operator=(const KvMemory&) = delete;

  // One entry a layer.
  absl::Span<const kernels::PagedKv> layers() const { return layers_; }

  // Of one page, all layers.
  static size_t PageBytes(const ModelConfig& config, const Shard& shard,
                          int page_size,
                          kernels::KvType type = kernels::KvType::kF32);

 private:
  KvMemory(void* memory, size_t bytes, std::vector<kernels::PagedKv> layers);

  void* const memory_;
  const size_t bytes_;
  const std::vector<kernels::PagedKv> layers_;
};

}  // namespace lockstep
