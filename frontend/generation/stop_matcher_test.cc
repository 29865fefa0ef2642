#include "frontend/generation/stop_matcher.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace lockstep {
namespace {

using Strings = std::vector<std::string>;

struct Result {
  std::string shown;
  std::optional<std::string> match;

  bool operator==(const Result& other) const {
    return shown == other.shown && match == other.match;
  }
};

Result Feed(const Strings& stops, const Strings& pieces, bool include = false) {
  StopMatcher matcher(stops, include);
  Result result;
  for (const std::string& piece : pieces) result.shown += matcher.Add(piece);
  result.shown += matcher.Finish();
  result.match = matcher.match();
  return result;
}

// The contract, read off the whole text.
Result Expected(const Strings& stops, const std::string& text, bool include) {
  for (size_t at = 0; at < text.size(); ++at) {
    const std::string* best = nullptr;
    for (const std::string& stop : stops) {
      if (text.compare(at, stop.size(), stop) == 0 &&
          (best == nullptr || stop.size() > best->size())) {
        best = &stop;
      }
    }
    if (best != nullptr) {
      return {text.substr(0, include ? at + best->size() : at), *best};
    }
  }
  return {text, std::nullopt};
}

TEST(StopMatcher, Table) {
  const struct {
    Strings stops;
    Strings pieces;
    std::string shown;
    std::optional<std::string> match;
  } kCases[] = {
      {{}, {"all ", "of it"}, "all of it", std::nullopt},
      {{"stop"}, {"no such thing"}, "no such thing", std::nullopt},
      {{"stop"}, {"it st", "ops here"}, "it ", "stop"},
      {{"stop"}, {"it st", "ays"}, "it stays", std::nullopt},
      {{"stop"}, {"almost sto"}, "almost sto", std::nullopt},
      {{"\n\n"}, {"a\n", "b\n", "\nc"}, "a\nb", "\n\n"},
      // The one that starts first, though the other is complete before it.
      {{"bc", "abcd"}, {"xabc", "d"}, "x", "abcd"},
      {{"bc", "abcd"}, {"xabc", "e"}, "xa", "bc"},
      {{"bc", "abcd"}, {"xabc"}, "xa", "bc"},
      // The longest of those that start together.
      {{"ab", "abc"}, {"ab", "c"}, "", "abc"},
      {{"ab", "abc"}, {"ab", "d"}, "", "ab"},
      {{"ab", "abc"}, {"ab"}, "", "ab"},
      // A match that overlaps a failed start of itself.
      {{"aab"}, {"a", "a", "a", "b"}, "a", "aab"},
      {{"né"}, {"un n", "é"}, "un ", "né"},
  };
  for (const auto& c : kCases) {
    const Result result = Feed(c.stops, c.pieces);
    EXPECT_EQ(result.shown, c.shown) << testing::PrintToString(c.pieces);
    EXPECT_EQ(result.match, c.match) << testing::PrintToString(c.pieces);
  }
}

TEST(StopMatcher, ShowsTheMatchWhenAsked) {
  EXPECT_EQ(Feed({"stop"}, {"now st", "op it"}, true).shown, "now stop");
}

TEST(StopMatcher, ShowsTextAsSoonAsItCanNotBePartOfAMatch) {
  StopMatcher matcher({"abc"}, false);
  EXPECT_EQ(matcher.Add("xxa"), "xx");
  EXPECT_EQ(matcher.Add("b"), "");
  EXPECT_EQ(matcher.Add("x"), "abx");
  EXPECT_EQ(matcher.Add("abc"), "");
  EXPECT_EQ(matcher.match(), "abc");
  EXPECT_EQ(matcher.Add("more"), "");
  EXPECT_EQ(matcher.Finish(), "");
}

TEST(StopMatcher, AnyCutOfATextGivesTheSame) {
  const unsigned seed = std::random_device{}();
  std::mt19937 random(seed);
  const auto word = [&](size_t least, size_t most) {
    std::string result(least + random() % (most - least + 1), ' ');
    for (char& c : result) c = "abc"[random() % 3];
    return result;
  };
  for (int round = 0; round < 20'000; ++round) {
    Strings stops(1 + random() % 4);
    for (std::string& stop : stops) stop = word(1, 5);
    const std::string text = word(0, 20);
    Strings pieces;
    for (size_t at = 0; at < text.size();) {
      const size_t size = random() % 4;
      pieces.push_back(text.substr(at, size));
      at += std::min(size, text.size() - at);
    }
    for (const bool include : {false, true}) {
      EXPECT_TRUE(Feed(stops, pieces, include) ==
                  Expected(stops, text, include))
          << "seed " << seed << ", stops " << testing::PrintToString(stops)
          << ", pieces " << testing::PrintToString(pieces);
    }
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace lockstep
