#include "hub/content_hash.h"

#include <gtest/gtest.h>

namespace lockstep {
namespace {

std::string HashOf(absl::string_view content, size_t digits) {
  auto hash =
      ContentHash::Like(std::string(digits, '0'), content.size()).value();
  hash.Add(content.substr(0, 3));
  hash.Add(content.substr(3));
  return hash.Finish();
}

// sha256sum; git hash-object --stdin.
TEST(ContentHashTest, IsTheOneTheNameIsOf) {
  EXPECT_EQ(HashOf("hello\n", 64),
            "5891b5b522d5df086d0ff0b110fbd9d2"
            "1bb4fc7163af34d08286a2e846f6be03");
  EXPECT_EQ(HashOf("hello\n", 40), "ce013625030ba8dba906f756967f9e9ca394464a");
}

TEST(ContentHashTest, OtherNamesAreOfNone) {
  for (const std::string& name :
       {std::string(), std::string(39, 'a'), std::string(40, 'g'),
        std::string(64, 'A'), std::string(65, '0')}) {
    EXPECT_FALSE(ContentHash::Like(name, 1).has_value()) << name;
  }
}

}  // namespace
}  // namespace lockstep
