#include "worker/scheduler/next_span.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

namespace lockstep {
namespace {

struct Row {
  const char* name;
  // A prompt of 8 tokens, `resumed` after it, `computed` of all computed.
  int resumed;
  int computed;
  int logprobs_done;  // -1: none are wanted
  int max_tokens;
  int max_rows;
  // What comes out: [begin, end), rows for [logits_begin, logits_end).
  int end;
  bool samples;
  int logits_begin;
  int logits_end;
};

constexpr Row kRows[] = {
    {"Whole", 0, 0, -1, 100, 4, 8, true, 0, 0},
    {"BudgetEndsIt", 0, 0, -1, 5, 4, 5, false, 0, 0},
    {"Rest", 0, 5, -1, 5, 4, 8, true, 0, 0},
    {"ResumedIsComputedAsWell", 3, 0, -1, 100, 4, 11, true, 0, 0},
    {"Decode", 3, 10, -1, 1, 1, 11, true, 0, 0},
    {"NoRowForTheLast", 0, 0, -1, 100, 0, 7, false, 0, 0},
    {"NoRowAtAll", 0, 7, -1, 100, 0, 7, false, 0, 0},
    {"AllPromptLogprobs", 0, 0, 0, 100, 8, 8, true, 0, 7},
    {"NoRowLeftForTheLast", 0, 0, 0, 100, 7, 7, false, 0, 7},
    {"RowsEndIt", 0, 0, 0, 100, 3, 3, false, 0, 3},
    {"RowsContinue", 0, 3, 3, 100, 3, 6, false, 3, 6},
    {"LastRows", 0, 6, 6, 100, 3, 8, true, 6, 7},
    {"BudgetBeforeRows", 0, 2, 2, 2, 9, 4, false, 2, 4},
    {"ReportedOnesTakeNoRows", 0, 0, 5, 100, 2, 7, false, 5, 7},
    {"OnlyReportedOnes", 0, 0, 5, 3, 2, 3, false, 0, 0},
    {"AllReported", 2, 0, 7, 100, 1, 10, true, 0, 0},
    {"NoneFitYet", 0, 3, 3, 100, 0, 3, false, 0, 0},
    {"PromptRowsThenResumed", 4, 0, 0, 100, 8, 12, true, 0, 7},
    {"PromptRowsAndNoneToSample", 4, 0, 0, 100, 7, 11, false, 0, 7},
};

TEST(NextSpanTest, TakesWhatTokensAndRowsAllow) {
  for (const Row& row : kRows) {
    SCOPED_TRACE(row.name);
    auto request = std::make_shared<v1::AddRequest>();
    for (int i = 0; i < 8; ++i) request->add_prompt_token_ids(i);
    for (int i = 0; i < row.resumed; ++i) request->add_resume_token_ids(i);
    request->mutable_sampling()->set_n(1);
    if (row.logprobs_done >= 0) {
      request->mutable_sampling()->set_prompt_logprobs_plus_one(1);
    }
    ScheduledSequence scheduled({1, 0}, request, /*arrival_step=*/1);
    scheduled.sequence.set_num_computed(row.computed);
    scheduled.prompt_logits_done = std::max(row.logprobs_done, 0);

    const SequenceSpan span = NextSpan(scheduled, row.max_tokens, row.max_rows);
    EXPECT_EQ(span.sequence, &scheduled.sequence);
    EXPECT_EQ(span.begin, row.computed);
    EXPECT_EQ(span.begin + span.count, row.end);
    EXPECT_EQ(span.samples, row.samples);
    EXPECT_EQ(span.prompt_logits_begin, row.logits_begin);
    EXPECT_EQ(span.prompt_logits_end, row.logits_end);
    EXPECT_LE(span.num_logits_rows(), row.max_rows);
  }
}

TEST(NextSpanTest, OnlyTheFirstChoiceReportsThePrompt) {
  auto request = std::make_shared<v1::AddRequest>();
  for (int i = 0; i < 8; ++i) request->add_prompt_token_ids(i);
  request->mutable_sampling()->set_n(2);
  request->mutable_sampling()->set_prompt_logprobs_plus_one(1);
  EXPECT_EQ(ScheduledSequence({1, 0}, request, 1).prompt_logits_end(), 7);
  EXPECT_EQ(ScheduledSequence({1, 0}, request, 1).max_cached_tokens(), 0);
  EXPECT_EQ(ScheduledSequence({1, 1}, request, 1).prompt_logits_end(), 0);
  EXPECT_EQ(ScheduledSequence({1, 1}, request, 1).max_cached_tokens(), 7);
}

}  // namespace
}  // namespace lockstep
