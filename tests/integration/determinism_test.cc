// The determinism contract: what a watched request gets in random schedules is,
// bit for bit, what it gets alone. See docs/determinism.md.
//
// LOCKSTEP_SCHEDULE_SEED to begin at another seed than 0, which repeats a
// failure; LOCKSTEP_SCHEDULES for another number of them than 200. With Bazel:
// --test_env=LOCKSTEP_SCHEDULES=20.

#include <absl/status/statusor.h>
#include <absl/strings/str_cat.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "kernels/ops.h"
#include "kernels/threads/thread_pool.h"
#include "proto/embedding.pb.h"
#include "tests/integration/contract_models.h"
#include "tests/integration/schedule.h"
#include "tests/integration/shrink_schedule.h"
#include "tests/integration/watched_run.h"

namespace lockstep {
namespace {

using testing::Configuration;
using testing::Observation;
using testing::Schedule;

// From this number on, each of kEvents must have come about kEnough times.
constexpr uint32_t kManySchedules = 200;
constexpr int kEnough = 5;
constexpr const char* kEvents[] = {
    "cache hit",  "chunked prefill", "mate aborted", "others in its batch",
    "preempted",  "long context",    "resumed",      "1 ranks",
    "2 ranks",    "4 ranks",         "8 ranks",      "1 threads",
    "2 threads",  "3 threads",       "4 threads",    "pages of 1",
    "pages of 4", "pages of 16",     "pages of 64",  "pages of 256",
    "reference"};

uint32_t FromEnvironment(const char* name, uint32_t otherwise) {
  const char* value = std::getenv(name);
  return value == nullptr ? otherwise : std::strtoul(value, nullptr, 10);
}

// The reference's kernels are slow: they get a small share, and no model whose
// rows are blocks of 256.
std::vector<std::string> IsasOfThisMachine(bool with_reference) {
  kernels::ThreadPool pool({.num_threads = 1});
  std::vector<std::string> isas;
  for (const char* isa : {"avx2", "avx512_vnni"}) {
    if (kernels::Ops::Create(isa, &pool).ok()) isas.insert(isas.end(), 6, isa);
  }
  if (with_reference || isas.empty()) isas.push_back("reference");
  return isas;
}

// The watched embedding is all but done when a mate, which came first, grows
// into its pages.
Schedule PreemptedEmbedding(v1::Pooling pooling, int hidden_size,
                            int num_ranks) {
  constexpr int kPrompt = 40, kMatePrompt = 8, kMateTokens = 50;
  Schedule schedule;
  schedule.limits = {.num_pages = 21,
                     .page_size = 4,
                     .max_step_tokens = 2,
                     .max_sequences = 2,
                     .max_logits_rows = 2,
                     .max_context = 64};
  schedule.num_ranks = num_ranks;
  schedule.arrives = 4;
  for (int i = 0; i < kPrompt; ++i) schedule.watched.add_prompt_token_ids(i);
  schedule.watched.mutable_sampling()->set_n(1);
  schedule.watched.mutable_embedding()->set_pooling(pooling);
  schedule.watched.mutable_embedding()->set_dimensions(hidden_size);
  v1::AddRequest& mate = schedule.mates.emplace_back().request;
  for (int i = 0; i < kMatePrompt; ++i) mate.add_prompt_token_ids(2 * i);
  mate.mutable_sampling()->set_top_p(1);
  mate.mutable_sampling()->set_repetition_penalty(1);
  mate.mutable_sampling()->set_max_tokens(kMateTokens);
  mate.mutable_sampling()->set_n(1);
  return schedule;
}

class Determinism : public ::testing::Test {
 protected:
  Determinism()
      : models_(testing::MakeContractModels(
            absl::StrCat(::testing::TempDir(), "contract"))),
        configurations_(testing::AllConfigurations(models_)),
        isas_(IsasOfThisMachine(/*with_reference=*/true)),
        fast_isas_(IsasOfThisMachine(/*with_reference=*/false)) {}

  // What went wrong, or was another bit; empty if nothing.
  std::string Failure(const Configuration& configuration,
                      const Schedule& schedule) {
    events_.clear();
    const auto& sizes = configuration.model->num_ranks;
    const absl::StatusOr<Observation> alone = testing::RunSchedule(
        configuration, testing::Alone(schedule, sizes.front()), {});
    if (!alone.ok()) return absl::StrCat("alone: ", alone.status().message());
    const absl::StatusOr<Observation> found =
        testing::RunSchedule(configuration, schedule, alone->tokens);
    if (!found.ok()) return std::string(found.status().message());
    events_ = found->events;
    return testing::Difference(*alone, schedule, *found);
  }

  // Empty if the contract holds; `embeds`: of an embedding.
  std::string Check(uint32_t seed, bool embeds) {
    const Configuration& configuration =
        configurations_[seed % configurations_.size()];
    const auto& config = configuration.model->files.config;
    const auto& sizes = configuration.model->num_ranks;
    Schedule schedule = testing::DrawSchedule(
        seed, {.vocab_size = config.vocab_size,
               .max_context = static_cast<int>(config.max_context),
               .num_ranks = sizes,
               .isas = config.hidden_size < 256 ? isas_ : fast_isas_});
    if (embeds) {
      schedule = testing::Embedded(std::move(schedule),
                                   seed % 2 == 0 ? v1::LAST_TOKEN : v1::MEAN,
                                   config.hidden_size);
    }
    const std::string failure = Failure(configuration, schedule);
    for (const std::string& event : events_) ++num_events_[event];
    if (failure.empty()) return "";
    const Schedule smallest =
        testing::Shrink(schedule, [&](const Schedule& changed) {
          return std::count(sizes.begin(), sizes.end(), changed.num_ranks) >
                     0 &&
                 !Failure(configuration, changed).empty();
        });
    return absl::StrCat(
        "LOCKSTEP_SCHEDULE_SEED=", seed, ", ", testing::Describe(configuration),
        ": ", failure, "\n", testing::Describe(schedule),
        "\nThe least that fails: ", Failure(configuration, smallest), "\n",
        testing::Describe(smallest));
  }

  // All there are to try, or as many as the environment says.
  void CheckAll(bool embeds) {
    const uint32_t first = FromEnvironment("LOCKSTEP_SCHEDULE_SEED", 0);
    const uint32_t many = embeds ? kManySchedules / 2 : kManySchedules;
    const uint32_t count = FromEnvironment("LOCKSTEP_SCHEDULES", many);
    std::cout << "schedules from LOCKSTEP_SCHEDULE_SEED=" << first
              << ", LOCKSTEP_SCHEDULES=" << count << "\n";
    for (uint32_t i = 0; i < count; ++i) {
      const std::string failure = Check(first + i, embeds);
      ASSERT_TRUE(failure.empty()) << failure;
    }
    for (const auto& [event, times] : num_events_) {
      std::cout << event << ": " << times << "\n";
    }
    if (count >= many) ExpectEnoughOfEverything(embeds);
  }

  void ExpectEnoughOfEverything(bool embeds) {
    for (const std::string event : kEvents) {
      // There is no output, and few steps in which it could be preempted:
      // below it is.
      if (embeds && (event == "resumed" || event == "preempted")) continue;
      EXPECT_GE(num_events_[event], embeds ? kEnough / 2 : kEnough) << event;
    }
  }

  const std::vector<testing::ContractModel> models_;
  const std::vector<Configuration> configurations_;
  const std::vector<std::string> isas_;
  const std::vector<std::string> fast_isas_;
  std::set<std::string> events_;  // of the last schedule
  std::map<std::string, int> num_events_;
};

TEST_F(Determinism, NoScheduleChangesABitOfAWatchedRequest) {
  CheckAll(/*embeds=*/false);
}

TEST_F(Determinism, NorOfAWatchedEmbedding) { CheckAll(/*embeds=*/true); }

// Which of random ones hardly is.
TEST_F(Determinism, NorOfAnEmbeddingThatIsPreempted) {
  int number = 0;
  for (const Configuration& configuration : configurations_) {
    SCOPED_TRACE(testing::Describe(configuration));
    const auto& sizes = configuration.model->num_ranks;
    const Schedule schedule =
        PreemptedEmbedding(number % 2 == 0 ? v1::LAST_TOKEN : v1::MEAN,
                           configuration.model->files.config.hidden_size,
                           sizes[number / 2 % sizes.size()]);
    EXPECT_EQ(Failure(configuration, schedule), "");
    EXPECT_EQ(events_.count("preempted"), 1);
    ++number;
  }
}

TEST_F(Determinism, ModelsOfEightEqualSlicesAreTriedOnUpToEightRanks) {
  const std::vector<int> all = {1, 2, 4, 8};
  for (const testing::ContractModel& model : models_) {
    if (model.name == "nine-heads-f16") {
      EXPECT_EQ(model.num_ranks, std::vector<int>{3});
    } else if (model.name == "llama-q6_k") {
      EXPECT_EQ(model.num_ranks, std::vector<int>{1});
    } else {
      EXPECT_EQ(model.num_ranks, all) << model.name;
    }
  }
}

}  // namespace
}  // namespace lockstep
