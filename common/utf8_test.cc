#include "common/utf8.h"

#include <gtest/gtest.h>

#include <random>

namespace lockstep {
namespace {

struct Case {
  std::string bytes;
  std::optional<size_t> first_invalid;
  std::string repaired;
};

// The ill-formed ones and their repair: Unicode 15, tables 3-8 to 3-11.
const Case kCases[] = {
    {"", std::nullopt, ""},
    {"plain", std::nullopt, "plain"},
    {std::string("\0x", 2), std::nullopt, std::string("\0x", 2)},
    {"€ß𝄞", std::nullopt, "€ß𝄞"},
    {"\xf4\x8f\xbf\xbf", std::nullopt, "\xf4\x8f\xbf\xbf"},
    {"a\x80", 1, "a\uFFFD"},
    {"ab\xff\xfe", 2, "ab\uFFFD\uFFFD"},
    {"\xc0\xaf\xe0\x80\xbf", 0, "\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD"},
    {"\xed\xa0\x80x", 0, "\uFFFD\uFFFD\uFFFDx"},
    {"\xf4\x91\x92\x93", 0, "\uFFFD\uFFFD\uFFFD\uFFFD"},
    {"\xe1\x80\xe2\xf0\x91\x92\xf1\xbf\x41", 0, "\uFFFD\uFFFD\uFFFD\uFFFDA"},
    {"é\xe2\x82", 2, "é\uFFFD"},
};

TEST(FindInvalidUtf8, GivesTheOffsetOfTheFirstIllFormedCharacter) {
  for (const Case& c : kCases) {
    EXPECT_EQ(FindInvalidUtf8(c.bytes), c.first_invalid) << c.repaired;
  }
}

TEST(Utf8Repairer, ReplacesEachMaximalSubpart) {
  for (const Case& c : kCases) EXPECT_EQ(RepairUtf8(c.bytes), c.repaired);
}

TEST(Utf8Repairer, GivesTheSameTextHoweverTheBytesAreCut) {
  const uint32_t seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  constexpr uint8_t kBytes[] = {'a',  0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf, 0xc2,
                                0xe0, 0xe2, 0xed, 0xf0, 0xf1, 0xf4, 0xf5, 0xff};
  for (int round = 0; round < 2000; ++round) {
    std::string bytes;
    for (int i = random() % 40; i > 0; --i) {
      bytes.push_back(kBytes[random() % std::size(kBytes)]);
    }
    std::string text;
    Utf8Repairer repairer;
    for (size_t at = 0; at < bytes.size();) {
      const size_t size = random() % (bytes.size() - at) + 1;
      repairer.Add(absl::string_view(bytes).substr(at, size), text);
      EXPECT_EQ(FindInvalidUtf8(text), std::nullopt);
      at += size;
    }
    repairer.Finish(text);
    EXPECT_EQ(text, RepairUtf8(bytes));
  }
}

}  // namespace
}  // namespace lockstep
