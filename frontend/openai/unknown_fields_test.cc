#include "frontend/openai/unknown_fields.h"

#include <absl/strings/str_cat.h>
#include <gtest/gtest.h>

namespace lockstep::openai {
namespace {

TEST(UnknownFields, KeepsABoundedNumberOfNames) {
  UnknownFields unknown;
  for (int i = 0; i < 100; ++i) unknown.Count(absl::StrCat("field", i));
  unknown.Count("field0");
  EXPECT_EQ(unknown.counts().size(), UnknownFields::kMaxNames + 1);
  EXPECT_EQ(unknown.counts()["field0"], 2);
  EXPECT_EQ(unknown.counts()["…"], 36);
}

}  // namespace
}  // namespace lockstep::openai
