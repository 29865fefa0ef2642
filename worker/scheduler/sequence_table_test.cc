#include "worker/scheduler/sequence_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "worker/scheduler/scheduler_options.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class SequenceTableTest : public ::testing::Test {
 protected:
  void Add(uint64_t number, int priority = 0, uint32_t n = 1,
           bool bypass = false, uint64_t step = 1) {
    auto request = std::make_shared<v1::AddRequest>();
    request->set_request(number);
    request->set_priority(priority);
    request->set_bypass_prefix_cache(bypass);
    request->add_prompt_token_ids(1);
    request->add_prompt_token_ids(2);
    request->mutable_sampling()->set_n(n);
    table_.Add(std::move(request), step);
  }

  ScheduledSequence* Find(uint64_t request, uint32_t choice = 0) {
    return table_.Find({request, choice});
  }

  template <typename Sequences>
  static std::vector<std::string> Names(const Sequences& sequences) {
    std::vector<std::string> names;
    for (const ScheduledSequence* scheduled : sequences) {
      names.push_back(std::to_string(scheduled->id().request) + "." +
                      std::to_string(scheduled->id().choice));
    }
    return names;
  }
  std::vector<std::string> Waiting() { return Names(table_.waiting()); }
  std::vector<std::string> Running() { return Names(table_.running()); }

  SequenceTable table_;
};

TEST_F(SequenceTableTest, OrdersByPriorityThenArrivalThenChoice) {
  Add(1);
  Add(2, /*priority=*/-5);
  Add(3, /*priority=*/1);
  Add(4, /*priority=*/-5, /*n=*/2, /*bypass=*/true);
  Add(5);
  EXPECT_THAT(Waiting(), ElementsAre("2.0", "4.0", "4.1", "1.0", "5.0", "3.0"));
  for (uint64_t request : {5, 3, 2, 1}) table_.Start(Find(request));
  EXPECT_THAT(Running(), ElementsAre("2.0", "1.0", "5.0", "3.0"));
}

TEST_F(SequenceTableTest, WaitingMakesUpForPriority) {
  const auto add = [&](uint64_t number, int priority, uint64_t step) {
    Add(number, priority, /*n=*/1, /*bypass=*/false, step);
  };
  add(1, /*priority=*/1, /*step=*/10);
  add(2, /*priority=*/0, /*step=*/10 + kStepsPerPriority - 1);
  add(3, /*priority=*/0, /*step=*/10 + kStepsPerPriority);
  add(4, /*priority=*/-100, /*step=*/10 + 101 * kStepsPerPriority - 1);
  add(5, /*priority=*/-100, /*step=*/10 + 101 * kStepsPerPriority);
  EXPECT_THAT(Waiting(), ElementsAre("2.0", "4.0", "1.0", "3.0", "5.0"));
}

TEST_F(SequenceTableTest, APriorityOfAnySizeIsOrdered) {
  constexpr int kLeast = std::numeric_limits<int>::min();
  constexpr int kMost = std::numeric_limits<int>::max();
  Add(1, kMost);
  Add(2);
  Add(3, kLeast);
  EXPECT_THAT(Waiting(), ElementsAre("3.0", "2.0", "1.0"));
}

TEST_F(SequenceTableTest, APreemptedSequenceReturnsToItsPlace) {
  for (uint64_t request : {1, 2, 3}) Add(request);
  table_.Start(Find(1));
  table_.Start(Find(2));
  table_.Requeue(Find(2));
  EXPECT_THAT(Waiting(), ElementsAre("2.0", "3.0"));
  EXPECT_THAT(Running(), ElementsAre("1.0"));
}

TEST_F(SequenceTableTest, HoldsSiblingsUntilThePromptIsShared) {
  Add(1, 0, /*n=*/3);
  EXPECT_THAT(Waiting(), ElementsAre("1.0"));
  EXPECT_EQ(table_.num_waiting(), 3);
  table_.Start(Find(1, 0));
  EXPECT_THAT(Waiting(), IsEmpty());
  EXPECT_EQ(table_.num_waiting(), 2);
  table_.PromptIsShared(1);
  EXPECT_THAT(Waiting(), ElementsAre("1.1", "1.2"));
}

TEST_F(SequenceTableTest, TheNextChoiceLeadsWhenTheFirstGoes) {
  Add(1, 0, /*n=*/4);
  table_.Remove(Find(1, 1));  // held
  EXPECT_THAT(Waiting(), ElementsAre("1.0"));
  table_.Remove(Find(1, 0));  // waiting
  EXPECT_THAT(Waiting(), ElementsAre("1.2"));
  table_.Start(Find(1, 2));
  table_.Remove(Find(1, 2));  // running
  EXPECT_THAT(Waiting(), ElementsAre("1.3"));
  table_.Remove(Find(1, 3));
  EXPECT_TRUE(table_.empty());
  EXPECT_EQ(table_.num_waiting(), 0);
  EXPECT_EQ(table_.waiting_tokens(), 0);
}

TEST_F(SequenceTableTest, FindsOnlyTheLiving) {
  Add(1, 0, /*n=*/2);
  EXPECT_NE(Find(1, 1), nullptr);
  EXPECT_EQ(Find(1, 2), nullptr);
  EXPECT_EQ(Find(2), nullptr);
  table_.Remove(Find(1, 0));
  EXPECT_EQ(Find(1, 0), nullptr);
  EXPECT_THAT(Names(table_.Choices(1)), ElementsAre("1.1"));
  EXPECT_THAT(Names(table_.Choices(9)), IsEmpty());
}

TEST_F(SequenceTableTest, CountsWaitingTokens) {
  Add(1);
  Add(2, 0, /*n=*/2);
  EXPECT_EQ(table_.waiting_tokens(), 4);
  table_.Start(Find(1));
  EXPECT_EQ(table_.waiting_tokens(), 2);
  Find(1)->sequence.AppendToken(3);
  table_.Requeue(Find(1));
  EXPECT_EQ(table_.waiting_tokens(), 5);
}

TEST(SequenceTableDeathTest, NumbersCountUp) {
  SequenceTable table;
  auto request = std::make_shared<v1::AddRequest>();
  request->set_request(2);
  request->mutable_sampling()->set_n(1);
  table.Add(request, /*step=*/1);
  EXPECT_DEATH(table.Add(request, /*step=*/1), "request 2");
}

}  // namespace
}  // namespace lockstep
