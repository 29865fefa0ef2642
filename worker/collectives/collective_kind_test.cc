#include "worker/collectives/collective_kind.h"

#include <gtest/gtest.h>

namespace lockstep {
namespace {

TEST(ParseCollective, AutoIsSharedMemoryOnOneHostAndGlooOnSeveral) {
  EXPECT_EQ(*ParseCollective("auto", 4, 1), CollectiveKind::kSharedMemory);
  EXPECT_EQ(*ParseCollective("auto", 4, 2), CollectiveKind::kGloo);
  EXPECT_EQ(*ParseCollective("gloo", 4, 1), CollectiveKind::kGloo);
  EXPECT_EQ(*ParseCollective("shared_memory", 4, 1),
            CollectiveKind::kSharedMemory);
  EXPECT_EQ(*ParseCollective("nccl", 4, 2), CollectiveKind::kNccl);
}

TEST(ParseCollective, OneRankNeedsNone) {
  for (const char* const flag : {"auto", "shared_memory", "gloo", "nccl"}) {
    EXPECT_EQ(*ParseCollective(flag, 1, 1), CollectiveKind::kSingle);
  }
}

TEST(ParseCollective, NamesTheFlagAndWhatItMayBe) {
  EXPECT_EQ(ParseCollective("mpi", 2, 1).status(),
            absl::InvalidArgumentError("--collective is \"mpi\"; it must be "
                                       "auto, shared_memory, gloo or nccl."));
  EXPECT_EQ(ParseCollective("shared_memory", 2, 2).status(),
            absl::InvalidArgumentError(
                "--collective is shared_memory, but the hosts of --num_nodes 2 "
                "share none; it must be auto or gloo."));
}

}  // namespace
}  // namespace lockstep
