#include "worker/collectives/self_test.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "worker/collectives/blamed_rank.h"
#include "worker/collectives/shared_memory_collective.h"
#include "worker/collectives/single_collective.h"

namespace lockstep {
namespace {

using ::testing::HasSubstr;

// Alters what it passes on, as a broken transport would.
class FaultyCollective final : public Collective {
 public:
  enum class Fault { kNone, kGather, kSum };

  FaultyCollective(Collective* inner, Fault fault)
      : inner_(inner), fault_(fault) {}

  int rank() const override { return inner_->rank(); }
  int size() const override { return inner_->size(); }
  absl::Status AllReduceSum(absl::Span<float> data) override {
    const absl::Status status = inner_->AllReduceSum(data);
    if (fault_ == Fault::kSum) data.back() += 1;
    return status;
  }
  absl::Status AllGather(absl::Span<const float> in,
                         absl::Span<float> out) override {
    const absl::Status status = inner_->AllGather(in, out);
    // Rank 1's first value.
    if (fault_ == Fault::kGather) out[in.size()] += 1;
    return status;
  }
  void SetTimeout(absl::Duration timeout) override {
    inner_->SetTimeout(timeout);
  }
  void End(const absl::Status& error) override { inner_->End(error); }
  int64_t num_all_reduces() const override { return 0; }
  int64_t num_all_gathers() const override { return 0; }

 private:
  Collective* const inner_;
  const Fault fault_;
};

// What each of two ranks says, where rank 0's transport is faulty.
std::vector<absl::Status> TestWith(FaultyCollective::Fault fault) {
  auto group = MakeLocalGroup(2);
  EXPECT_TRUE(group.ok());
  std::vector<absl::Status> statuses(2);
  std::vector<std::thread> ranks;
  for (int rank = 0; rank < 2; ++rank) {
    ranks.emplace_back([&, rank] {
      FaultyCollective collective(
          (*group)[rank].get(),
          rank == 0 ? fault : FaultyCollective::Fault::kNone);
      statuses[rank] = TestCollective(&collective, absl::Seconds(60));
      if (!statuses[rank].ok()) collective.Abort("the self-test failed");
    });
  }
  for (std::thread& rank : ranks) rank.join();
  return statuses;
}

TEST(TestCollective, PassesWhereAllIsWell) {
  for (const absl::Status& status : TestWith(FaultyCollective::Fault::kNone)) {
    EXPECT_TRUE(status.ok()) << status;
  }
  SingleCollective single;
  EXPECT_TRUE(TestCollective(&single, absl::Seconds(1)).ok());
}

TEST(TestCollective, NamesTheRankWhoseValuesAreWrong) {
  const auto statuses = TestWith(FaultyCollective::Fault::kGather);
  EXPECT_EQ(statuses[0].code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(statuses[0].message()),
              HasSubstr("what rank 0 got from rank 1, value 0 of 1, is "));
  EXPECT_EQ(BlamedRank(statuses[0]), 1);
  EXPECT_EQ(statuses[1].code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(BlamedRank(statuses[1]), std::nullopt);
}

TEST(TestCollective, NamesTheRankWhoseSumIsWrong) {
  const auto statuses = TestWith(FaultyCollective::Fault::kSum);
  EXPECT_EQ(statuses[0].code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(statuses[0].message()), HasSubstr("rank 0's sum"));
}

TEST(TestCollective, NamesTheRankThatDoesNotCome) {
  auto group = MakeLocalGroup(2);
  ASSERT_TRUE(group.ok());
  const absl::Status late =
      TestCollective((*group)[0].get(), absl::Milliseconds(50));
  EXPECT_EQ(late.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(late.message(),
            "an all-gather of 1 floats: rank 1 did not come within 50ms.");
  EXPECT_EQ(BlamedRank(late), 1);
}

}  // namespace
}  // namespace lockstep
