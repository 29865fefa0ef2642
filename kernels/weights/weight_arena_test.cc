#include "kernels/weights/weight_arena.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

namespace lockstep::kernels {
namespace {

TEST(WeightArena, PiecesAreAlignedAndApart) {
  WeightArena arena;
  std::vector<std::pair<uint8_t*, size_t>> taken;
  for (const size_t bytes : {1, 64, 100, 5 << 20, 70 << 20, 3}) {
    uint8_t* data = arena.Allocate(bytes);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(data) % 64, 0);
    std::memset(data, static_cast<int>(taken.size()), bytes);
    taken.push_back({data, bytes});
  }
  for (size_t i = 0; i < taken.size(); ++i) {
    EXPECT_EQ(taken[i].first[0], i);
    EXPECT_EQ(taken[i].first[taken[i].second - 1], i);
  }
}

TEST(WeightArena, NeighboursShareAHugePage) {
  WeightArena arena;
  const uint8_t* first = arena.Allocate(100);
  EXPECT_EQ(arena.Allocate(100) - first, 128);
}

TEST(WeightArena, WhatItGaveStaysWhereItIsWhenItIsMoved) {
  WeightArena arena;
  uint8_t* data = arena.Allocate(8);
  std::memcpy(data, "weights", 8);
  const WeightArena moved = std::move(arena);
  EXPECT_STREQ(reinterpret_cast<const char*>(data), "weights");
}

}  // namespace
}  // namespace lockstep::kernels
