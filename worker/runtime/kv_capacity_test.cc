#include "worker/runtime/kv_capacity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace lockstep {
namespace {

using ::testing::HasSubstr;

KvCapacityInput Input() {
  return {.page_bytes = 1000,
          .page_size = 16,
          .num_pages = 0,
          .memory_bytes = 1'000'000,
          .max_sequences = 4,
          .max_context = 0,
          .model_max_context = 8000};
}

TEST(DefaultKvMemory, IsHalfOfWhatWeightsLeave) {
  constexpr int64_t kMiB = 1 << 20;
  EXPECT_EQ(*DefaultKvMemory(2000 * kMiB, 1, 850 * kMiB), 500 * kMiB);
  EXPECT_EQ(*DefaultKvMemory(2000 * kMiB, 2, 450 * kMiB), 200 * kMiB);
}

TEST(DefaultKvMemory, WithNothingLeftSaysWhatTakesIt) {
  const auto bytes = DefaultKvMemory(2000 << 20, 2, 850 << 20);
  EXPECT_EQ(bytes.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(bytes.status().message(),
            "no memory is left for KV pages: this host or its control group "
            "has 2000 MiB for its 2 ranks, of which each needs 850 MiB for "
            "packed weights and 150 MiB besides; raise the limit, or set "
            "--kv_cache_memory to try nonetheless.");
}

TEST(NumPages, IsWhatFitsTheMemory) { EXPECT_EQ(*NumPages(Input()), 1000); }

TEST(NumPages, IsNoMoreThanAllSequencesNeed) {
  KvCapacityInput input = Input();
  input.max_context = 100;
  EXPECT_EQ(*NumPages(input), 4 * 7);
}

TEST(NumPages, TheFlagDecides) {
  KvCapacityInput input = Input();
  input.num_pages = 12'345;
  EXPECT_EQ(*NumPages(input), 12'345);
}

TEST(NumPages, AllTokensCanBeCounted) {
  KvCapacityInput input = Input();
  input.num_pages = 134'217'728;  // 2^31 tokens
  EXPECT_EQ(NumPages(input).status().message(),
            "--num_pages is 134217728; with --page_size of 16 it must be at "
            "most 134217727.");
  input.num_pages = 134'217'727;
  EXPECT_EQ(*NumPages(input), 134'217'727);
  input = Input();
  input.memory_bytes = int64_t{1} << 62;
  input.max_sequences = 4096;
  input.model_max_context = 1 << 30;
  EXPECT_EQ(*NumPages(input), 134'217'727);
}

TEST(NumPages, TooFewForOneSequenceNamesTheFlags) {
  KvCapacityInput input = Input();
  input.num_pages = 6;
  input.max_context = 97;
  const auto result = NumPages(input);
  EXPECT_EQ(result.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(result.status().message()),
              HasSubstr("holds 6 pages of 16 tokens, too few for one sequence "
                        "of 97"));

  input = Input();
  input.memory_bytes = 999;
  EXPECT_FALSE(NumPages(input).ok());
}

TEST(MaxContext, IsTheModelsAsFarAsThePagesGo) {
  EXPECT_EQ(*MaxContext(Input(), 1000), 8000);
  EXPECT_EQ(*MaxContext(Input(), 100), 1600);
}

TEST(MaxContext, IsTheUsualOneUnlessTheFlagSaysMore) {
  KvCapacityInput input = Input();
  input.usual_context = 2000;
  EXPECT_EQ(*MaxContext(input, 1000), 2000);
  EXPECT_EQ(*NumPages(input), 4 * 125);
  input.max_context = 3000;
  EXPECT_EQ(*MaxContext(input, 1000), 3000);
}

TEST(MaxContext, AboveTheModelsNamesTheFlag) {
  KvCapacityInput input = Input();
  input.max_context = 8001;
  EXPECT_EQ(MaxContext(input, 1000).status().message(),
            "--max_context (or --max_model_len) is 8001; the model takes at "
            "most 8000 tokens.");
}

}  // namespace
}  // namespace lockstep
