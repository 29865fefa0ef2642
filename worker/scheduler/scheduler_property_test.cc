#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "common/digest.h"
#include "tests/testing/scheduler_driver.h"
#include "worker/scheduler/scheduler.h"

namespace lockstep {
namespace {

// Drives two schedulers with one random history: requests of all kinds arrive,
// some are aborted, pages are few. Every stream must get what it gets alone,
// and the two must plan the same at every step.
class RandomHistory {
 public:
  RandomHistory(int page_size, uint32_t seed)
      : random_(seed),
        options_(DrawOptions(page_size)),
        first_(options_),
        second_(options_) {}

  void Run(int num_requests) {
    int left = num_requests;
    while (left > 0 || first_.scheduler().HasWork()) {
      while (left > 0 && Chance(3)) {
        AddRequest();
        --left;
      }
      if (first_.num_requests() > 0 && Chance(12)) AbortSome();
      ASSERT_EQ(first_.scheduler().HasWork(), second_.scheduler().HasWork());
      const Digest digest = first_.Step().digest;
      ASSERT_EQ(digest, second_.Step().digest);
      digests_.push_back(ToHex(digest));
      ASSERT_FALSE(testing::Test::HasFailure());
    }
    first_.ExpectAllAsAlone();
    second_.ExpectAllAsAlone();
    ExpectPromptLogprobs();
    const SchedulerStats stats = first_.scheduler().stats();
    EXPECT_EQ(stats.free_pages + stats.cached_pages, stats.total_pages);
    EXPECT_EQ(stats.waiting_sequences, 0);
    EXPECT_EQ(stats.waiting_tokens, 0);
  }

  const std::vector<std::string>& digests() const { return digests_; }
  uint64_t preemptions() { return first_.scheduler().stats().preemptions; }

 private:
  bool Chance(uint32_t n) { return random_() % n == 0; }
  int Draw(int low, int high) {
    return low + static_cast<int>(random_() % (high - low + 1));
  }

  SchedulerOptions DrawOptions(int page_size) {
    SchedulerOptions options;
    options.page_size = page_size;
    options.max_sequences = Draw(1, 8);
    options.max_step_tokens = options.max_sequences + Draw(0, 40);
    options.max_logits_rows = options.max_sequences + Draw(0, 10);
    options.max_context = Draw(8, 90);
    const int least = (options.max_context + page_size - 1) / page_size;
    options.num_pages = least + Draw(0, least);
    return options;
  }

  void AddRequest() {
    // Few beginnings, so that prefixes are shared.
    const int size = Draw(1, options_.max_context - 1);
    std::vector<uint32_t> prompt = TokenRun(100 * Draw(1, 3), size);
    if (Chance(2)) prompt[Draw(0, size - 1)] = 5;
    const int room = options_.max_context - size;
    v1::AddRequest request =
        MakeRequest(prompt, Chance(2) ? Draw(1, room) : 1000);
    request.set_priority(Chance(3) ? Draw(-1, 1) : 0);
    request.set_bypass_prefix_cache(Chance(6));
    v1::ResolvedSampling& sampling = *request.mutable_sampling();
    sampling.set_seed(Draw(0, 3));
    if (Chance(4)) sampling.set_n(Draw(2, 5));
    if (Chance(4)) sampling.set_prompt_logprobs_plus_one(1);
    if (Chance(5)) sampling.set_logprobs_plus_one(2);
    // About one token in twenty ends such a choice.
    if (Chance(3)) {
      for (uint32_t id = 0; id < 50; ++id) sampling.add_stop_token_ids(id);
    }
    if (Chance(4)) Resume(std::min<int>(room, sampling.max_tokens()), &request);
    first_.Add(request);
    second_.Add(request);
  }

  // As if an earlier call had got so far, up to `most` tokens a choice.
  void Resume(int most, v1::AddRequest* request) {
    const uint32_t n = request->sampling().n();
    for (uint32_t choice = 0; choice < n; ++choice) {
      const bool has_ended =
          Chance(4) && request->ended_choices_size() + 1 < static_cast<int>(n);
      if (has_ended) request->add_ended_choices(choice);
      const int done = has_ended ? 0 : Draw(0, most);
      request->add_resume_token_counts(done);
      for (int i = 0; i < done; ++i) request->add_resume_token_ids(9);
    }
  }

  void AbortSome() {
    const uint64_t request = 1 + random_() % first_.num_requests();
    std::vector<uint32_t> choices;
    if (Chance(2)) choices = {static_cast<uint32_t>(Draw(0, 3))};
    first_.Abort(request, choices);
    second_.Abort(request, choices);
  }

  void ExpectPromptLogprobs() {
    for (uint64_t number = 1; number <= first_.num_requests(); ++number) {
      const v1::AddRequest& request = first_.request(number);
      const auto& record = first_.outputs().of({number, 0});
      if (record.reason == v1::ABORTED) continue;
      if (record.tokens.empty() && !record.stop_token_id) continue;
      const bool wanted = request.sampling().prompt_logprobs_plus_one() > 0;
      ASSERT_EQ(record.prompt_logprobs.size(),
                wanted ? request.prompt_token_ids_size() - 1 : 0);
      for (size_t i = 0; i < record.prompt_logprobs.size(); ++i) {
        ASSERT_EQ(record.prompt_logprobs[i].token().token_id(),
                  request.prompt_token_ids(static_cast<int>(i) + 1));
      }
      ASSERT_EQ(record.logprobs.size(),
                request.sampling().logprobs_plus_one() > 0
                    ? record.tokens.size()
                    : 0);
    }
  }

  std::mt19937 random_;
  const SchedulerOptions options_;
  SchedulerDriver first_;
  SchedulerDriver second_;
  std::vector<std::string> digests_;
};

TEST(SchedulerPropertyTest, EveryStreamIsAsAloneAndRanksAgree) {
  uint64_t preemptions = 0;
  for (const int page_size : {1, 2, 4, 16, 256}) {
    for (uint32_t seed = 0; seed < 60; ++seed) {
      SCOPED_TRACE(testing::Message()
                   << "page size " << page_size << ", seed " << seed);
      RandomHistory history(page_size, seed);
      history.Run(30);
      if (HasFailure()) return;
      preemptions += history.preemptions();
    }
  }
  EXPECT_GT(preemptions, 100);
}

TEST(SchedulerPropertyTest, OtherHistoriesHaveOtherDigests) {
  RandomHistory a(4, 1);
  RandomHistory b(4, 2);
  a.Run(20);
  b.Run(20);
  std::vector<std::string> digests = a.digests();
  digests.insert(digests.end(), b.digests().begin(), b.digests().end());
  std::sort(digests.begin(), digests.end());
  EXPECT_EQ(std::adjacent_find(digests.begin(), digests.end()), digests.end());
}

}  // namespace
}  // namespace lockstep
