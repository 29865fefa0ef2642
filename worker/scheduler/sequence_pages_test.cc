#include "worker/scheduler/sequence_pages.h"

#include <absl/strings/str_cat.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "proto/group.pb.h"
#include "worker/scheduler/scheduled_sequence.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::unique_ptr<ScheduledSequence> Make(int num_tokens, bool bypass = false,
                                        uint32_t first_token = 0) {
  auto request = std::make_shared<v1::AddRequest>();
  request->set_bypass_prefix_cache(bypass);
  for (int i = 0; i < num_tokens; ++i) {
    request->add_prompt_token_ids(first_token + i);
  }
  return std::make_unique<ScheduledSequence>(SequenceId{1, 0}, request,
                                             /*arrival_step=*/1);
}

TEST(SequencePagesTest, AcquiresPagesForAllTokensBesideTheReserve) {
  SequencePages pages(/*num_pages=*/4, /*page_size=*/2);
  const auto sequence = Make(5);
  EXPECT_FALSE(pages.Acquire(*sequence, /*reserve_pages=*/2));
  EXPECT_THAT(sequence->sequence.pages(), IsEmpty());
  EXPECT_EQ(pages.cache().num_free(), 4);
  EXPECT_TRUE(pages.Acquire(*sequence, /*reserve_pages=*/1));
  EXPECT_THAT(sequence->sequence.pages(), ElementsAre(0, 1, 2));
  EXPECT_EQ(sequence->sequence.num_computed(), 0);
}

// Two prompts of a page each are cached; one of them begins a long prompt that
// waits. It marks its page as used when it is refused, and not at each look.
TEST(SequencePagesTest, ARefusedSequenceLooksIntoTheCacheNoMore) {
  SequencePages pages(/*num_pages=*/8, /*page_size=*/2);
  const auto cache = [&](uint32_t first_token, uint64_t step) {
    pages.set_step(step);
    const auto sequence = Make(2, false, first_token);
    ASSERT_TRUE(pages.Acquire(*sequence, 0));
    sequence->sequence.set_num_computed(2);
    pages.Release(*sequence);
  };
  const auto running = Make(8, /*bypass=*/true);
  ASSERT_TRUE(pages.Acquire(*running, 0));
  const auto waiting = Make(16);
  cache(/*first_token=*/0, /*step=*/1);
  pages.set_step(2);
  EXPECT_FALSE(pages.Acquire(*waiting, 0));
  cache(/*first_token=*/100, /*step=*/3);
  for (uint64_t step = 4; step < 9; ++step) {
    pages.set_step(step);
    EXPECT_FALSE(pages.Acquire(*waiting, 0));
  }
  // The waiting one's page is still the least recently used.
  const auto other = Make(6, /*bypass=*/true);
  ASSERT_TRUE(pages.Acquire(*other, 0));
  const auto second = Make(3, false, /*first_token=*/100);
  EXPECT_FALSE(pages.Acquire(*second, 0));
  pages.Release(*other);
  ASSERT_TRUE(pages.Acquire(*second, 0));
  EXPECT_EQ(second->sequence.num_computed(), 2);
  pages.Release(*running);
  pages.Release(*second);
  EXPECT_TRUE(pages.Acquire(*waiting, 0));
  EXPECT_EQ(waiting->sequence.num_computed(), 0);
}

// Against one that always looks: a random history of sequences that share
// prefixes, come, grow, publish and go.
TEST(SequencePagesTest, ARefusedSequenceIsNeverRefusedForTooLong) {
  const uint64_t seed = std::random_device()();
  SCOPED_TRACE(absl::StrCat("seed ", seed));
  std::mt19937_64 random(seed);
  SequencePages pages(/*num_pages=*/24, /*page_size=*/2);
  std::vector<std::unique_ptr<ScheduledSequence>> running;
  std::unique_ptr<ScheduledSequence> waiting;
  int refusals = 0;
  for (uint64_t step = 1; step < 20'000; ++step) {
    pages.set_step(step);
    if (waiting == nullptr) {
      waiting = Make(1 + random() % 40, random() % 8 == 0, random() % 3 * 100);
    }
    const int reserve = running.empty() ? 0 : running.size() + 1;
    if (pages.Acquire(*waiting, reserve)) {
      running.push_back(std::move(waiting));
    } else {
      ++refusals;
      const ScheduledSequence& refused = *waiting;
      ScheduledSequence fresh(
          SequenceId{2, 0},
          std::make_shared<v1::AddRequest>(refused.sequence.request()),
          /*arrival_step=*/1);
      ASSERT_FALSE(pages.Acquire(fresh, reserve)) << "step " << step;
    }
    if (running.empty()) continue;
    const size_t one = random() % running.size();
    Sequence& sequence = running[one]->sequence;
    sequence.set_num_computed(sequence.num_tokens());
    if (random() % 2 == 0) pages.Publish(*running[one]);
    if (random() % 4 == 0) {
      pages.Release(*running[one]);
      running.erase(running.begin() + one);
    }
  }
  EXPECT_GT(refusals, 1000);
}

TEST(SequencePagesTest, GrowsByAPageWhenTheLastIsFull) {
  SequencePages pages(2, 2);
  const auto sequence = Make(2);
  ASSERT_TRUE(pages.Acquire(*sequence, 0));
  sequence->sequence.set_num_computed(1);
  EXPECT_TRUE(pages.Grow(*sequence));
  EXPECT_THAT(sequence->sequence.pages(), ElementsAre(0));
  sequence->sequence.set_num_computed(2);
  EXPECT_TRUE(pages.Grow(*sequence));
  EXPECT_THAT(sequence->sequence.pages(), ElementsAre(0, 1));
  sequence->sequence.set_num_computed(4);
  EXPECT_FALSE(pages.Grow(*sequence));
}

TEST(SequencePagesTest, PublishesFullComputedPagesOnly) {
  SequencePages pages(8, 2);
  const auto first = Make(6);
  ASSERT_TRUE(pages.Acquire(*first, 0));
  first->sequence.set_num_computed(5);
  pages.Publish(*first);
  EXPECT_EQ(first->prefix.num_pages(), 2);

  const auto second = Make(6);
  ASSERT_TRUE(pages.Acquire(*second, 0));
  EXPECT_EQ(second->sequence.num_computed(), 4);
  EXPECT_THAT(second->sequence.pages(), ElementsAre(0, 1, 3));
}

TEST(SequencePagesTest, ReleasesToTheCacheAndFreesTheRest) {
  SequencePages pages(8, 2);
  const auto sequence = Make(6);
  ASSERT_TRUE(pages.Acquire(*sequence, 0));
  sequence->sequence.set_num_computed(5);
  pages.Release(*sequence);
  EXPECT_THAT(sequence->sequence.pages(), IsEmpty());
  EXPECT_EQ(sequence->sequence.num_computed(), 0);
  EXPECT_EQ(pages.cache().num_evictable(), 2);
  EXPECT_EQ(pages.cache().num_free(), 6);
  ASSERT_TRUE(pages.Acquire(*sequence, 0));
  EXPECT_EQ(sequence->sequence.num_computed(), 4);
}

TEST(SequencePagesTest, BypassLeavesTheCacheAlone) {
  SequencePages pages(8, 2);
  const auto cached = Make(6);
  ASSERT_TRUE(pages.Acquire(*cached, 0));
  cached->sequence.set_num_computed(6);
  pages.Release(*cached);
  const auto bypass = Make(6, /*bypass=*/true);
  ASSERT_TRUE(pages.Acquire(*bypass, 0));
  EXPECT_EQ(bypass->sequence.num_computed(), 0);
  bypass->sequence.set_num_computed(6);
  pages.Release(*bypass);
  EXPECT_EQ(pages.cache().num_cached(), 3);
  EXPECT_EQ(pages.cache().num_free(), 5);
}

}  // namespace
}  // namespace lockstep
