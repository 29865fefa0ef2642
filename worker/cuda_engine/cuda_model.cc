#include "worker/cuda_engine/cuda_model.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>

#include <string>
#include <vector>

#include "kernels/cuda/attention.h"

namespace lockstep {
namespace {

// What of the model has no kernel; "" if all has.
std::string Lacking(const ModelConfig& config) {
  if (config.head_dim > cuda::kMaxHeadDim) {
    return absl::StrCat("heads of more than ", cuda::kMaxHeadDim);
  }
  return "";
}

bool CanCut(const ModelConfig& config, int size) {
  return config.num_heads % size == 0 &&
         (config.num_kv_heads % size == 0 || size % config.num_kv_heads == 0);
}

}  // namespace

absl::Status CheckCudaModel(const ModelConfig& config) {
  const std::string lacking = Lacking(config);
  if (lacking.empty()) return absl::OkStatus();
  return absl::UnimplementedError(
      absl::StrCat("On a GPU there are no ", lacking, " yet, which models of ",
                   config.architecture, " have; --device=cpu computes them."));
}

absl::Status CheckCudaShards(const ModelConfig& config, int size) {
  if (CanCut(config, size)) return absl::OkStatus();
  std::vector<int> sizes;
  for (int other = 1; other <= config.num_heads; ++other) {
    if (CanCut(config, other)) sizes.push_back(other);
  }
  return absl::InvalidArgumentError(
      absl::StrCat("--tensor_parallel_size is ", size, "; GPUs share ",
                   config.num_heads, " query heads and ", config.num_kv_heads,
                   " key-value heads evenly, so it must be one of ",
                   absl::StrJoin(sizes, ", "), "."));
}

}  // namespace lockstep
