#include "worker/engine/kv_memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "kernels/attention/kv_type.h"
#include "kernels/attention/paged_kv.h"
#include "worker/model_spec/model_config.h"
#include "worker/model_spec/shard.h"

namespace lockstep {
namespace {

using kernels::KvType;

struct Fixture {
  ModelConfig config;
  Shard shard;
  Fixture() {
    config.num_layers = 3;
    config.head_dim = 8;
    shard.kv_head_begin = 2;
    shard.kv_head_end = 4;
  }
};

TEST(KvMemory, PageHoldsKeysAndValuesOfAllLayers) {
  const Fixture f;
  const auto page_bytes = [&](KvType type) {
    return KvMemory::PageBytes(f.config, f.shard, 16, type);
  };
  const size_t vectors = 3 * 2 * 2 * 16;
  EXPECT_EQ(page_bytes(KvType::kF32), vectors * 8 * sizeof(float));
  EXPECT_EQ(page_bytes(KvType::kF16), vectors * 8 * 2);
  EXPECT_EQ(page_bytes(KvType::kBF16), vectors * 8 * 2);
  EXPECT_EQ(page_bytes(KvType::kInt8), vectors * (8 + sizeof(float)));
}

// One of a layer's arrays.
struct Array {
  void* data;
  size_t bytes;
};

TEST(KvMemory, LayersDoNotOverlap) {
  const Fixture f;
  const int num_pages = 5, page_size = 4;
  for (KvType type : kernels::kKvTypes) {
    SCOPED_TRACE(KvTypeName(type));
    auto memory =
        KvMemory::Create(f.config, f.shard, num_pages, page_size, type);
    ASSERT_TRUE(memory.ok()) << memory.status();
    ASSERT_EQ((*memory)->layers().size(), 3);
    const size_t vectors = num_pages * 2 * page_size;
    const size_t bytes = vectors * 8 * kernels::KvElementBytes(type);
    std::vector<Array> arrays;
    for (const kernels::PagedKv& layer : (*memory)->layers()) {
      EXPECT_EQ(layer.type, type);
      EXPECT_EQ(layer.num_kv_heads, 2);
      EXPECT_EQ(layer.page_size, page_size);
      EXPECT_EQ(layer.head_dim, 8);
      EXPECT_EQ(layer.Offset(num_pages - 1, 1, page_size - 1) + 8, vectors * 8);
      arrays.insert(arrays.end(), {{layer.keys, bytes}, {layer.values, bytes}});
      if (type == KvType::kInt8) {
        arrays.insert(arrays.end(),
                      {{layer.key_scales, vectors * sizeof(float)},
                       {layer.value_scales, vectors * sizeof(float)}});
      }
    }
    for (size_t i = 0; i < arrays.size(); ++i) {
      EXPECT_EQ(reinterpret_cast<uintptr_t>(arrays[i].data) % 64, 0);
      std::memset(arrays[i].data, static_cast<int>(i) + 1, arrays[i].bytes);
    }
    for (size_t i = 0; i < arrays.size(); ++i) {
      const char* data = static_cast<const char*>(arrays[i].data);
      EXPECT_EQ(std::count(data, data + arrays[i].bytes, i + 1),
                arrays[i].bytes);
    }
  }
}

TEST(KvMemory, MoreThanTheAddressSpaceIsAStatus) {
  Fixture f;
  f.config.num_layers = 1 << 10;
  f.config.head_dim = 1 << 10;
  const auto memory = KvMemory::Create(f.config, f.shard, 1 << 30, 256);
  EXPECT_EQ(memory.status().code(), absl::StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace lockstep
