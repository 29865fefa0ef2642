#include "worker/core/step_plan.h"

#include <gtest/gtest.h>

namespace lockstep {
namespace {

TEST(SequenceSpanTest, CountsRowsOfPromptPositionsAndOfTheSample) {
  struct {
    SequenceSpan span;
    int rows;
  } rows[] = {
      {{.begin = 0, .count = 4}, 0},
      {{.begin = 0, .count = 4, .samples = true}, 1},
      {{.begin = 0,
        .count = 4,
        .prompt_logits_begin = 1,
        .prompt_logits_end = 4},
       3},
      {{.begin = 0,
        .count = 5,
        .samples = true,
        .prompt_logits_begin = 1,
        .prompt_logits_end = 4},
       4},
  };
  for (const auto& row : rows) EXPECT_EQ(row.span.num_logits_rows(), row.rows);
}

}  // namespace
}  // namespace lockstep
