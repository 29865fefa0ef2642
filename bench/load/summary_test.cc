#include "bench/load/summary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace lockstep::bench {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Ten requests a second, answered after 0.1 s with 11 tokens in one second
// more; every fifth one fails, and the last one begins late.
LoadRun TenASecond() {
  LoadRun run;
  run.label = "ten";
  for (int i = 0; i < 50; ++i) {
    Record record = {.due_s = i * 0.1};
    record.first_s = record.due_s + (i == 49 ? 3 : 0.1);
    record.end_s = record.first_s + 1;
    record.tokens = 11;
    if (i % 5 == 0) record = {.due_s = i * 0.1, .error = "UNAVAILABLE"};
    run.records.push_back(record);
  }
  run.seconds = 10;
  run.inter_token.Record(0.1);
  return run;
}

TEST(Summarize, CountsAndMeasures) {
  const Summary summary = Summarize(TenASecond(), Slo());
  EXPECT_EQ(summary.requests, 50);
  EXPECT_EQ(summary.answered, 40);
  EXPECT_EQ(summary.errors.at("UNAVAILABLE"), 10);
  EXPECT_NEAR(summary.offered_rate, 10, 1e-9);
  EXPECT_NEAR(summary.answered_rate, 4, 1e-9);
  EXPECT_NEAR(summary.tokens_rate, 44, 1e-9);
  EXPECT_NEAR(summary.first_token.QuantileS(0.5), 0.1, 1e-3);
  EXPECT_NEAR(summary.whole.QuantileS(0.5), 1.1, 1e-2);
  EXPECT_EQ(summary.first_token.count(), 40);
}

TEST(Summarize, CountsAsGoodWhatKeepsTheSlo) {
  EXPECT_NEAR(Summarize(TenASecond(), Slo()).goodput_share, 39.0 / 50, 1e-9);
  EXPECT_NEAR(Summarize(TenASecond(), {.first_token_s = 5}).goodput_share,
              40.0 / 50, 1e-9);
  EXPECT_EQ(Summarize(TenASecond(), {.inter_token_s = 0.05}).goodput_rate, 0);
}

TEST(Summarize, OfNothingIsZero) {
  const Summary summary = Summarize(LoadRun(), Slo());
  EXPECT_EQ(summary.requests, 0);
  EXPECT_EQ(summary.answered_rate, 0);
}

TEST(ToRows, PutsTwoRunsBesideEachOther) {
  LoadRun other = TenASecond();
  other.label = "other";
  other.seconds = 20;
  const auto rows = ToRows(SummarizeEach({TenASecond(), other}, Slo()));
  EXPECT_THAT(rows[0], ElementsAre("", "ten", "other", "change"));
  EXPECT_THAT(rows, Contains(ElementsAre("UNAVAILABLE", "10", "10", "+0.0 %")));
  EXPECT_THAT(rows,
              Contains(ElementsAre("tokens /s", "44.0", "22.0", "-50.0 %")));
}

TEST(ToText, SaysWhatTheSloIs) {
  EXPECT_THAT(ToText(SummarizeEach({TenASecond()}, Slo()), Slo()),
              HasSubstr("first token within 2000 ms, 200 ms between"));
}

}  // namespace
}  // namespace lockstep::bench
