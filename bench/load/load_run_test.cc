#include "bench/load/load_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace lockstep::bench {
namespace {

using ::testing::HasSubstr;

LoadRun SmallRun() {
  LoadRun run;
  run.label = "small";
  run.options = {{"rate", 5.0}};
  run.seconds = 9.5;
  run.records = {{.due_s = 1,
                  .first_s = 1.5,
                  .end_s = 3.5,
                  .prompt_tokens = 7,
                  .tokens = 5},
                 {.due_s = 2, .end_s = 2.1, .error = "UNAVAILABLE"}};
  run.inter_token.Record(0.5);
  return run;
}

TEST(Record, CountsFromWhenItWasDue) {
  const Record record = SmallRun().records[0];
  EXPECT_EQ(record.first_token_s(), 0.5);
  EXPECT_EQ(record.whole_s(), 2.5);
  EXPECT_EQ(record.inter_token_s(), 0.5);
}

TEST(LoadRun, ComesBackFromItsFile) {
  const auto run = ParseRun(ToJson(SmallRun()).dump(), "run.json");
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_EQ(ToJson(*run), ToJson(SmallRun()));
  EXPECT_FALSE(run->records[1].ok());
}

TEST(LoadRun, OfAnotherFileIsRefusedByName) {
  for (const char* text : {"", "[]", "{}", R"({"label": "x"})",
                           R"({"label":"x","seconds":1,"requests":[[1]],)"
                           R"("inter_token":{}})"}) {
    EXPECT_THAT(std::string(ParseRun(text, "run.json").status().message()),
                HasSubstr("run.json"))
        << text;
  }
}

}  // namespace
}  // namespace lockstep::bench
