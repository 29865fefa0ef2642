// What a request may bring along of earlier calls.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "worker/service/request_validator.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using R = v1::WorkerGenerateRequest;

absl::StatusOr<v1::AddRequest> Validate(const R& request) {
  return ValidateRequest(
      request,
      {.vocabulary_size = 50, .max_context = 20, .eos_token_ids = {49, 2}},
      /*drawn_seed=*/77);
}

R GoodRequest() {
  R request;
  for (uint32_t id : {5, 6, 7}) request.add_prompt_token_ids(id);
  return request;
}

void ResumeChoices(v1::WorkerGenerateRequest& request,
                   const std::vector<int>& counts) {
  request.mutable_sampling()->set_n(static_cast<uint32_t>(counts.size()));
  for (const int count : counts) {
    request.add_resume_token_counts(count);
    for (int i = 0; i < count; ++i) request.add_resume_token_ids(3);
  }
}

struct Row {
  std::string name;
  std::function<void(R&)> edit;
  std::string sentence;  // a part of the refusal; empty: accepted
};

const std::vector<Row> kRows = {
    {"Resume", [](R& r) { r.add_resume_token_ids(3); }, ""},
    {"ResumeIdOutside", [](R& r) { r.add_resume_token_ids(50); },
     "resume_token_ids[0] is 50, it must be below the vocabulary size 50."},
    {"ResumeOfChoices",
     [](R& r) {
       ResumeChoices(r, {1, 0});
     },
     ""},
    {"ResumeOfChoicesUncounted",
     [](R& r) {
       r.add_resume_token_ids(3);
       r.mutable_sampling()->set_n(2);
     },
     "resume_token_counts has 0 counts, it must have one for each of the 2 "
     "choices."},
    {"ResumeCountsMissing",
     [](R& r) {
       ResumeChoices(r, {1, 0});
       r.mutable_sampling()->set_n(3);
     },
     "resume_token_counts has 2 counts, it must have one for each of the 3 "
     "choices."},
    {"ResumeCountsOfOtherSum",
     [](R& r) {
       ResumeChoices(r, {1, 1});
       r.add_resume_token_ids(3);
     },
     "resume_token_counts sum to 2, they must sum to the 3 of "
     "resume_token_ids."},
    {"ResumeCountsThatOverflow",
     [](R& r) {
       ResumeChoices(r, {1, 1});
       r.set_resume_token_counts(0, 0xffffffff);
       r.set_resume_token_counts(1, 3);
     },
     "resume_token_counts[0] is 4294967295, it must be at most "
     "sampling.max_tokens, 17."},
    {"ResumeOfOneBeyondMaxTokens",
     [](R& r) {
       ResumeChoices(r, {0, 2});
       r.mutable_sampling()->set_max_tokens(1);
     },
     "resume_token_counts[1] is 2, it must be at most sampling.max_tokens, "
     "1."},
    {"EndedChoices",
     [](R& r) {
       ResumeChoices(r, {0, 2, 0});
       r.add_ended_choices(0);
       r.add_ended_choices(2);
     },
     ""},
    {"EndedChoiceOutside",
     [](R& r) {
       ResumeChoices(r, {0, 2});
       r.add_ended_choices(2);
     },
     "ended_choices[0] is 2, it must be below sampling.n, 2."},
    {"EndedChoiceTwice",
     [](R& r) {
       ResumeChoices(r, {0, 2, 1});
       r.add_ended_choices(1);
       r.add_ended_choices(1);
     },
     "ended_choices[1] is 1, it must be above the one before it, 1."},
    {"AllChoicesEnded", [](R& r) { r.add_ended_choices(0); },
     "ended_choices has all 1 choices, at least one must go on."},
    {"ResumeUpToMaxTokens",
     [](R& r) {
       r.add_resume_token_ids(3);
       r.mutable_sampling()->set_max_tokens(1);
     },
     ""},
    {"ResumeBeyondMaxTokens",
     [](R& r) {
       r.add_resume_token_ids(3);
       r.add_resume_token_ids(3);
       r.mutable_sampling()->set_max_tokens(1);
     },
     "resume_token_ids has 2 ids, it must have at most sampling.max_tokens, "
     "1."},
    {"ResumeBeyondContext",
     [](R& r) {
       for (int i = 0; i < 18; ++i) r.add_resume_token_ids(3);
     },
     "resume_token_ids has 18 ids, it must have at most sampling.max_tokens, "
     "17."},
};

TEST(ResumeValidatorTest, NamesFieldValueAndLimit) {
  for (const Row& row : kRows) {
    R request = GoodRequest();
    row.edit(request);
    const auto add = Validate(request);
    if (row.sentence.empty()) {
      EXPECT_TRUE(add.ok()) << row.name << ": " << add.status().message();
      continue;
    }
    EXPECT_EQ(add.status().code(), absl::StatusCode::kInvalidArgument)
        << row.name;
    EXPECT_THAT(std::string(add.status().message()), HasSubstr(row.sentence))
        << row.name;
  }
}

TEST(ResumeValidatorTest, TakesWhatIsSet) {
  R request = GoodRequest();
  ResumeChoices(request, {0, 1});
  request.add_ended_choices(0);
  const auto add = Validate(request);
  ASSERT_TRUE(add.ok()) << add.status();
  EXPECT_THAT(add->resume_token_ids(), ElementsAre(3));
  EXPECT_THAT(add->resume_token_counts(), ElementsAre(0, 1));
  EXPECT_THAT(add->ended_choices(), ElementsAre(0));
}

}  // namespace
}  // namespace lockstep
