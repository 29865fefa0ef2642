#include "worker/checkpoint/stacked_experts.h"

#include <absl/strings/string_view.h>
#include <absl/types/span.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/weights/dtype.h"
#include "worker/checkpoint/tensor_source.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;

constexpr absl::string_view kBytes = "aabbccddeeffgghhiijjkkll";

// Two experts of three rows of two columns.
Tensor Whole() {
  return {"whole",
          kernels::DType::kF16,
          {2, 3, 2},
          absl::MakeConstSpan(reinterpret_cast<const uint8_t*>(kBytes.data()),
                              kBytes.size())};
}

std::string BytesOf(const Tensor& tensor) {
  return std::string(tensor.bytes.begin(), tensor.bytes.end());
}

TEST(StackedExperts, AreRowsOfTheirTensor) {
  StackedExperts experts;
  EXPECT_EQ(experts.Add({"l.experts.", ".up"},
                        {.tensor = Whole(), .first_row = 1, .rows = 2}),
            nullptr);
  const auto first = experts.Find("l.experts.0.up");
  ASSERT_TRUE(first.has_value());
  EXPECT_EQ(first->name, "l.experts.0.up");
  EXPECT_EQ(first->type, kernels::DType::kF16);
  EXPECT_THAT(first->shape, ElementsAre(2, 2));
  EXPECT_EQ(BytesOf(*first), "ccddeeff");
  EXPECT_EQ(BytesOf(*experts.Find("l.experts.1.up")), "iijjkkll");
  EXPECT_EQ(experts.StackOf("l.experts.1.up")->tensor.name, "whole");
  std::vector<std::string> names;
  experts.AddNames(&names);
  EXPECT_THAT(names, ElementsAre("l.experts.0.up", "l.experts.1.up"));
}

TEST(StackedExperts, NoOtherNameIsOneOfThem) {
  StackedExperts experts;
  experts.Add({"l.experts.", ".up"}, {.tensor = Whole(), .rows = 3});
  for (const char* name :
       {"l.experts.2.up", "l.experts.0.down", "k.experts.0.up",
        "l.experts.00.up", "l.experts.01.up", "l.experts.-1.up",
        "l.experts.+1.up", "l.experts.up", "l.experts..up", "l.experts.0",
        "l.experts.", "", "l.experts.18446744073709551616.up",
        "l.experts.9223372036854775807.up"}) {
    EXPECT_FALSE(experts.Find(name).has_value()) << name;
    EXPECT_EQ(experts.StackOf(name), nullptr) << name;
  }
}

TEST(StackedExperts, TellsWhoHadANameBefore) {
  StackedExperts experts;
  experts.Add({"l.experts.", ".up"}, {.tensor = Whole(), .rows = 3});
  Tensor other = Whole();
  other.name = "other";
  const auto* known =
      experts.Add({"l.experts.", ".up"}, {.tensor = other, .rows = 3});
  ASSERT_NE(known, nullptr);
  EXPECT_EQ(known->tensor.name, "whole");
}

}  // namespace
}  // namespace lockstep
