#include "worker/scheduler/conservation.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "proto/group.pb.h"
#include "tests/testing/output_recorder.h"
#include "worker/scheduler/scheduler_state.h"

namespace lockstep {
namespace {

// Two running sequences of five tokens on pages of two; the faults are planted
// in their page tables.
class ConservationTest : public ::testing::Test {
 protected:
  ConservationTest() {
    for (uint64_t number : {1, 2}) {
      auto request = std::make_shared<v1::AddRequest>();
      request->set_request(number);
      for (uint32_t id = 0; id < 5; ++id) request->add_prompt_token_ids(id);
      request->mutable_sampling()->set_n(1);
      state_.table.Add(request, /*step=*/1);
      ScheduledSequence* scheduled = state_.table.Find({number, 0});
      EXPECT_TRUE(state_.pages.Acquire(*scheduled, 0));
      state_.table.Start(scheduled);
    }
  }

  std::vector<int32_t>& PagesOf(uint64_t number) {
    return state_.table.Find({number, 0})->sequence.mutable_pages();
  }
  std::string Fault() {
    return std::string(CheckConservation(state_).message());
  }

  OutputRecorder sink_;
  SchedulerState state_{{.num_pages = 8, .page_size = 2, .max_context = 16},
                        &sink_};
};

TEST_F(ConservationTest, HoldsForPrivateSharedAndFreePages) {
  EXPECT_EQ(Fault(), "");
  ScheduledSequence* scheduled = state_.table.Find({1, 0});
  scheduled->sequence.set_num_computed(5);
  state_.pages.Publish(*scheduled);
  EXPECT_EQ(Fault(), "");
}

TEST_F(ConservationTest, FindsALostPage) {
  PagesOf(2).pop_back();
  EXPECT_EQ(Fault(), "KV page 5 is lost.");
}

TEST_F(ConservationTest, FindsAPageOfTwoSequences) {
  PagesOf(2)[0] = PagesOf(1)[0];
  EXPECT_EQ(Fault(), "KV page 0 is in two places.");
}

TEST_F(ConservationTest, FindsAPageThatIsUsedAndFree) {
  PagesOf(2)[0] = 7;
  EXPECT_EQ(Fault(), "KV page 7 is in two places.");
}

TEST_F(ConservationTest, FindsASharedPageThatIsNotCached) {
  ScheduledSequence* scheduled = state_.table.Find({1, 0});
  scheduled->sequence.set_num_computed(5);
  state_.pages.Publish(*scheduled);
  PagesOf(1)[0] = 7;
  EXPECT_EQ(Fault(), "KV page 7 of request 1 is shared but not cached.");
}

// A sequence that is removed without giving its pages back leaves the shared
// ones locked for ever.
TEST_F(ConservationTest, FindsALockThatNobodyHolds) {
  state_.pages.Release(*state_.table.Find({2, 0}));
  state_.table.Remove(state_.table.Find({2, 0}));
  ScheduledSequence* scheduled = state_.table.Find({1, 0});
  scheduled->sequence.AppendToken(5);
  scheduled->sequence.set_num_computed(6);
  state_.pages.Publish(*scheduled);
  state_.table.Remove(scheduled);
  EXPECT_EQ(Fault(), "3 cached KV pages are locked, but 0 are held.");
}

}  // namespace
}  // namespace lockstep
