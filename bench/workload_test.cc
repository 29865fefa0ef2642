#include "bench/workload.h"

#include <absl/status/status.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <iterator>
#include <utility>

namespace lockstep::bench {
namespace {

using ::testing::HasSubstr;
using Kind = Workload::Kind;

TEST(Workload, IsParsedByItsName) {
  const auto workloads =
      ParseWorkloads("pp512,tg128,b8,ctx4096,serve32,load,prefix");
  ASSERT_TRUE(workloads.ok()) << workloads.status();
  const std::pair<Kind, int> expected[] = {
      {Kind::kPrefill, 512},   {Kind::kDecode, 128},   {Kind::kBatch, 8},
      {Kind::kContext, 4096},  {Kind::kServe, 32},     {Kind::kLoad, 0},
      {Kind::kPrefixCache, 0}, {Kind::kPrefixCache, 0}};
  ASSERT_EQ(workloads->size(), std::size(expected));
  for (size_t i = 0; i < std::size(expected); ++i) {
    EXPECT_EQ((*workloads)[i].kind, expected[i].first) << i;
    EXPECT_EQ((*workloads)[i].size, expected[i].second) << i;
  }
  EXPECT_EQ((*workloads)[0].name, "pp512");
  EXPECT_EQ((*workloads)[6].name, "prefix-off");
  EXPECT_EQ((*workloads)[7].name, "prefix-on");
  EXPECT_TRUE((*workloads)[7].uses_prefix_cache);
}

TEST(Workload, OfAnotherNameIsRefused) {
  for (const char* text :
       {"", "pp", "pp0", "b-1", "tg12x", "fast", "pp1,,b1"}) {
    const auto workloads = ParseWorkloads(text);
    EXPECT_EQ(workloads.status().code(), absl::StatusCode::kInvalidArgument)
        << text;
    EXPECT_THAT(workloads.status().message(), HasSubstr("--workloads has"));
  }
}

}  // namespace
}  // namespace lockstep::bench
