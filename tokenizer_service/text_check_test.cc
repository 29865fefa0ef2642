#include "tokenizer_service/text_check.h"

#include <gtest/gtest.h>

#include <string>

#include "tokenizer_service/tokenizer.h"

namespace lockstep {
namespace {

TEST(TextCheck, NamesTheFieldAndTheByte) {
  EXPECT_TRUE(CheckText("text", "né\0").ok());
  EXPECT_EQ(CheckText("text", "n\xc3\xa9\xc3"),
            absl::InvalidArgumentError("text is no valid UTF-8: its byte 3 "
                                       "starts no character."));
}

TEST(TextCheck, NamesTheSizeAndTheLimit) {
  std::string text(kMaxTextBytes, 'x');
  EXPECT_TRUE(CheckText("text", text).ok());
  text.push_back('x');
  EXPECT_EQ(CheckText("text", text),
            absl::InvalidArgumentError(
                "text is 16777217 bytes, more than the 16777216 allowed."));
}

}  // namespace
}  // namespace lockstep
