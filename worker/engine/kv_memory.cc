#include "worker/engine/kv_memory.h"

#include <absl/status/status.h>
#include <absl/strings/str_cat.h>
#include <sys/mman.h>

#include <cerrno>
#include <utility>

namespace lockstep {
namespace {

// Vectors of head_dim among the keys of one page of one layer; its values have
// as many.
size_t PageVectors(const Shard& shard, int page_size) {
  return static_cast<size_t>(shard.num_kv_heads()) * page_size;
}

size_t ScaleBytes(kernels::KvType type) {
  return type == kernels::KvType::kInt8 ? sizeof(float) : 0;
}

// The arrays of a layer begin at multiples of this, a cache line.
constexpr size_t kAlignment = 64;

size_t Aligned(size_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

}  // namespace

size_t KvMemory::PageBytes(const ModelConfig& config, const Shard& shard,
                           int page_size, kernels::KvType type) {
  const size_t vector_bytes =
      config.head_dim * kernels::KvElementBytes(type) + ScaleBytes(type);
  return 2 * config.num_layers * PageVectors(shard, page_size) * vector_bytes;
}

absl::StatusOr<std::unique_ptr<KvMemory>> KvMemory::Create(
    const ModelConfig& config, const Shard& shard, int num_pages, int page_size,
    kernels::KvType type) {
  const size_t vectors = num_pages * PageVectors(shard, page_size);
  const size_t data_bytes =
      Aligned(vectors * config.head_dim * kernels::KvElementBytes(type));
  const size_t scale_bytes = Aligned(vectors * ScaleBytes(type));
  const size_t bytes = 2 * config.num_layers * (data_bytes + scale_bytes);
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) {
    return absl::ErrnoToStatus(
        errno, absl::StrCat("mapping ", bytes, " bytes for ", num_pages,
                            " KV pages of ", page_size, " tokens"));
  }
  // Pages lie anywhere, so with small ones most reads would miss the TLB. A
  // refusal costs speed only.
  madvise(memory, bytes, MADV_HUGEPAGE);

  char* next = static_cast<char*>(memory);
  const auto take = [&next](size_t size) {
    return std::exchange(next, next + size);
  };
  std::vector<kernels::PagedKv> layers(config.num_layers);
  for (kernels::PagedKv& layer : layers) {
    layer.type = type;
    layer.keys = take(data_bytes);
    layer.values = take(data_bytes);
    if (scale_bytes > 0) {
      layer.key_scales = reinterpret_cast<float*>(take(scale_bytes));
      layer.value_scales = reinterpret_cast<float*>(take(scale_bytes));
    }
    layer.num_kv_heads = shard.num_kv_heads();
    layer.page_size = page_size;
    layer.head_dim = config.head_dim;
  }
  return std::unique_ptr<KvMemory>(
      new KvMemory(memory, bytes, std::move(layers)));
}

KvMemory::KvMemory(void* memory, size_t bytes,
                   std::vector<kernels::PagedKv> layers)
    : memory_(memory), bytes_(bytes), layers_(std::move(layers)) {}

KvMemory::~KvMemory() { munmap(memory_, bytes_); }

}  // namespace lockstep
