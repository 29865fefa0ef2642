#include "worker/engine/kv_memory.h"

#include <absl/status/status.h>
#include <absl/strings/str_cat.h>
#include <sys/mman.h>

#include <cerrno>
#include <utility>

namespace lockstep {
namespace {

// Floats of the keys of one page of one layer; its values are as many.
size_t PageFloats(const ModelConfig& config, const Shard& shard,
                  int page_size) {
  return static_cast<size_t>(shard.num_kv_heads()) * page_size *
         config.head_dim;
}

}  // namespace

size_t KvMemory::PageBytes(const ModelConfig& config, const Shard& shard,
                           int page_size) {
  return 2 * config.num_layers * PageFloats(config, shard, page_size) *
         sizeof(float);
}

absl::StatusOr<std::unique_ptr<KvMemory>> KvMemory::Create(
    const ModelConfig& config, const Shard& shard, int num_pages,
    int page_size) {
  const size_t bytes = num_pages * PageBytes(config, shard, page_size);
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) {
    return absl::ErrnoToStatus(
        errno, absl::StrCat("mapping ", bytes, " bytes for ", num_pages,
                            " KV pages of ", page_size, " tokens"));
  }

  const size_t floats = num_pages * PageFloats(config, shard, page_size);
  float* next = static_cast<float*>(memory);
  std::vector<kernels::PagedKv> layers(config.num_layers);
  for (kernels::PagedKv& layer : layers) {
    layer.keys = next;
    layer.values = next + floats;
    layer.num_kv_heads = shard.num_kv_heads();
    layer.page_size = page_size;
    layer.head_dim = config.head_dim;
    next += 2 * floats;
  }
  return std::unique_ptr<KvMemory>(
      new KvMemory(memory, bytes, std::move(layers)));
}

KvMemory::KvMemory(void* memory, size_t bytes,
                   std::vector<kernels::PagedKv> layers)
    : memory_(memory), bytes_(bytes), layers_(std::move(layers)) {}

KvMemory::~KvMemory() { munmap(memory_, bytes_); }

}  // namespace lockstep
