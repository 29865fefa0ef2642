#include "bench/load/arrivals.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace lockstep::bench {
namespace {

using ::testing::HasSubstr;

// Of n independent gaps the mean has a standard error of mean / sqrt(n), and
// their variance is the square of their mean.
TEST(PoissonArrivals, ComeAtTheRateAndAsIrregularlyAsChance) {
  constexpr double kRate = 50;
  const auto arrivals = PoissonArrivals(kRate, 400, 7);
  const double n = arrivals.size();
  EXPECT_NEAR(n, 400 * kRate, 5 * std::sqrt(400 * kRate));
  double squares = 0;
  for (size_t i = 1; i < arrivals.size(); ++i) {
    const double gap = arrivals[i].at_s - arrivals[i - 1].at_s;
    ASSERT_GE(gap, 0);
    squares += gap * gap;
  }
  // The second moment is 2 / rate²; its relative error is sqrt(5 / n).
  EXPECT_NEAR(squares / n * kRate * kRate, 2, 5 * 2 * std::sqrt(5 / n));
}

TEST(PoissonArrivals, AreThoseOfTheirSeed) {
  EXPECT_EQ(PoissonArrivals(10, 5, 1)[3].at_s,
            PoissonArrivals(10, 5, 1)[3].at_s);
  EXPECT_NE(PoissonArrivals(10, 5, 1)[3].at_s,
            PoissonArrivals(10, 5, 2)[3].at_s);
}

TEST(ConstantArrivals, ComeEvenly) {
  const auto arrivals = ConstantArrivals(4, 1.1);
  ASSERT_EQ(arrivals.size(), 5);
  EXPECT_EQ(arrivals[3].at_s, 0.75);
}

TEST(ParseTrace, SortsByTime) {
  const auto arrivals =
      ParseTrace("# a trace\n2.5,30,4\n\n0.5, 10 ,2 # first\n", "t");
  ASSERT_TRUE(arrivals.ok()) << arrivals.status();
  ASSERT_EQ(arrivals->size(), 2);
  EXPECT_EQ((*arrivals)[0].at_s, 0.5);
  EXPECT_EQ((*arrivals)[0].prompt_tokens, 10);
  EXPECT_EQ((*arrivals)[1].output_tokens, 4);
}

TEST(ParseTrace, NamesTheLineThatIsNone) {
  for (const char* line : {"1,2", "1,2,3,4", "x,2,3", "-1,2,3", "1,0,3",
                           "1,2,2000000", "nan,2,3"}) {
    const auto arrivals = ParseTrace(std::string("0,1,1\n") + line, "t.csv");
    EXPECT_THAT(std::string(arrivals.status().message()),
                HasSubstr("t.csv, line 2 is \""))
        << line;
  }
}

}  // namespace
}  // namespace lockstep::bench
