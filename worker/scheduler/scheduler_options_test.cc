#include "worker/scheduler/scheduler_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace lockstep {
namespace {

TEST(SchedulerOptionsTest, NamesOptionValueAndLimit) {
  const SchedulerOptions good = {.num_pages = 8,
                                 .page_size = 4,
                                 .max_step_tokens = 16,
                                 .max_sequences = 4,
                                 .max_logits_rows = 4,
                                 .max_context = 32};
  EXPECT_TRUE(ValidateSchedulerOptions(good).ok());
  struct {
    int SchedulerOptions::*option;
    int value;
    std::string sentence;
  } rows[] = {
      {&SchedulerOptions::page_size, 0,
       "page_size is 0, it must be a power of two from 1 to 256 tokens."},
      {&SchedulerOptions::page_size, 24, "page_size is 24"},
      {&SchedulerOptions::page_size, 512, "page_size is 512"},
      {&SchedulerOptions::page_size, -16, "page_size is -16"},
      {&SchedulerOptions::max_context, 1,
       "max_context is 1, it must be at least 2"},
      {&SchedulerOptions::max_context, 33,
       "num_pages is 8, it must be at least 9 so that one sequence of "
       "max_context tokens fits."},
      {&SchedulerOptions::max_sequences, 0,
       "max_sequences is 0, it must be at least 1."},
      {&SchedulerOptions::max_step_tokens, 3,
       "max_step_tokens is 3, it must be at least 4, which is max_sequences"},
      {&SchedulerOptions::max_logits_rows, 3,
       "max_logits_rows is 3, it must be at least 4, which is max_sequences."},
      {&SchedulerOptions::num_pages, 7,
       "num_pages is 7, it must be at least 8"},
  };
  for (const auto& row : rows) {
    SchedulerOptions options = good;
    options.*row.option = row.value;
    const absl::Status status = ValidateSchedulerOptions(options);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()),
                ::testing::HasSubstr(row.sentence));
  }
}

}  // namespace
}  // namespace lockstep
