#include "worker/engine/kv_memory.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "kernels/paged_kv.h"
#include "worker/model_spec/model_config.h"
#include "worker/model_spec/shard.h"

namespace lockstep {
namespace {

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
  EXPECT_EQ(KvMemory::PageBytes(f.config, f.shard, 16),
            3 * 2 * 2 * 16 * 8 * sizeof(float));
}

TEST(KvMemory, LayersDoNotOverlap) {
  const Fixture f;
  const int num_pages = 5, page_size = 4;
  auto memory = KvMemory::Create(f.config, f.shard, num_pages, page_size);
  ASSERT_TRUE(memory.ok()) << memory.status();
  ASSERT_EQ((*memory)->layers().size(), 3);
  const size_t floats = num_pages * 2 * page_size * 8;
  float value = 1;
  for (const kernels::PagedKv& layer : (*memory)->layers()) {
    EXPECT_EQ(layer.num_kv_heads, 2);
    EXPECT_EQ(layer.page_size, page_size);
    EXPECT_EQ(layer.head_dim, 8);
    EXPECT_EQ(layer.Offset(num_pages - 1, 1, page_size - 1) + 8, floats);
    std::fill_n(layer.keys, floats, value++);
    std::fill_n(layer.values, floats, value++);
  }
  value = 1;
  for (const kernels::PagedKv& layer : (*memory)->layers()) {
    for (float* data : {layer.keys, layer.values}) {
      EXPECT_EQ(std::count(data, data + floats, value), floats);
      ++value;
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
