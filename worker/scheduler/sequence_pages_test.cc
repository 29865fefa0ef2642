#include "worker/scheduler/sequence_pages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "proto/group.pb.h"
#include "worker/scheduler/scheduled_sequence.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::unique_ptr<ScheduledSequence> Make(int num_tokens, bool bypass = false) {
  auto request = std::make_shared<v1::AddRequest>();
  request->set_bypass_prefix_cache(bypass);
  for (int i = 0; i < num_tokens; ++i) request->add_prompt_token_ids(i);
  return std::make_unique<ScheduledSequence>(SequenceId{1, 0}, request);
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
