#include "tests/simulation/explore.h"

#include <absl/status/statusor.h>
#include <absl/strings/str_cat.h>
#include <glog/logging.h>
#include <google/protobuf/text_format.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "tests/simulation/child.h"
#include "tests/simulation/totals.h"
#include "tests/testing/shrink.h"

namespace lockstep::testing {
namespace {

constexpr uint64_t kScenariosOfAChild = 16;
constexpr int kChildren = 2;

// "" or what a scenario failed of; then what they did, serialized.
std::string SimulateSeeds(uint64_t first_seed,
                          const std::function<Scenario(uint64_t)>& draw,
                          Simulator simulate, uint64_t* seed) {
  Totals totals;
  for (uint64_t i = 0; i < kScenariosOfAChild; ++i) {
    *seed = first_seed + i;
    const absl::Status status = simulate(draw(*seed), &totals);
    if (!status.ok()) return absl::StrCat("!", status.message());
  }
  return totals.SerializeAsString();
}

void AddToTotals(const std::string& bytes, Totals* totals) {
  Totals more;
  if (more.ParseFromString(bytes)) AddTotals(more, totals);
}

// Each makes a choice as plain as it can be.
ShrinkSteps<Scenario> ScenarioSteps() {
  return {
      .size = [](const Scenario& s) { return s.events_size(); },
      .erase =
          [](Scenario& s, int begin, int end) {
            s.mutable_events()->DeleteSubrange(begin, end - begin);
          },
      .simplifications =
          {
              [](Scenario& s) {
                s.set_num_ranks(std::max<uint32_t>(2, s.fault().rank() + 1));
              },
              [](Scenario& s) { s.mutable_limits()->set_max_sequences(2); },
              [](Scenario& s) {
                s.mutable_limits()->set_num_pages(s.limits().num_pages() * 16);
              },
              [](Scenario& s) {
                for (Event& event : *s.mutable_events()) event.set_at(0);
              },
              [](Scenario& s) {
                for (Event& event : *s.mutable_events()) {
                  if (!event.message().has_add()) continue;
                  auto& add = *event.mutable_message()->mutable_add();
                  add.clear_priority();
                  add.clear_bypass_prefix_cache();
                  add.clear_grammar();
                  add.mutable_sampling()->clear_stop_token_ids();
                  add.mutable_sampling()->clear_prompt_logprobs_plus_one();
                  add.mutable_sampling()->clear_logprobs_plus_one();
                }
              },
              [](Scenario& s) {
                for (Event& event : *s.mutable_events()) {
                  if (!event.message().has_add()) continue;
                  event.mutable_message()
                      ->mutable_add()
                      ->clear_resume_token_ids();
                }
              },
          }};
}

std::string ToText(const Scenario& scenario) {
  google::protobuf::TextFormat::Printer printer;
  printer.SetUseShortRepeatedPrimitives(true);
  std::string text;
  CHECK(printer.PrintToString(scenario, &text));
  return text;
}

}  // namespace

absl::Status SimulateInChild(const Scenario& scenario, Simulator simulate) {
  Child child([&](uint64_t*) {
    Totals totals;
    return std::string(simulate(scenario, &totals).message());
  });
  const absl::StatusOr<std::string> message = child.Join();
  if (!message.ok()) return message.status();
  return message->empty() ? absl::OkStatus() : absl::InternalError(*message);
}

std::optional<Failure> Explore(
    uint64_t first_seed, uint64_t rank_steps,
    const std::function<Scenario(uint64_t seed)>& draw, Totals* totals,
    Simulator simulate) {
  const uint64_t end = totals->rank_steps() + rank_steps;
  while (totals->rank_steps() < end) {
    std::vector<std::unique_ptr<Child>> children;
    for (int i = 0; i < kChildren; ++i) {
      children.push_back(std::make_unique<Child>([=, &draw](uint64_t* seed) {
        return SimulateSeeds(first_seed, draw, simulate, seed);
      }));
      first_seed += kScenariosOfAChild;
    }
    for (const auto& child : children) {
      const absl::StatusOr<std::string> result = child->Join();
      const uint64_t seed = child->progress();
      if (!result.ok()) return Failure{draw(seed), result.status()};
      if (!result->empty() && result->front() == '!') {
        return Failure{draw(seed), absl::InternalError(result->substr(1))};
      }
      AddToTotals(*result, totals);
    }
  }
  return std::nullopt;
}

std::string ShrinkAndDescribe(const Failure& failure, Simulator simulate) {
  const Scenario shrunk = Shrink<Scenario>(
      failure.scenario, ScenarioSteps(),
      [=](const Scenario& s) { return !SimulateInChild(s, simulate).ok(); });
  return absl::StrCat(
      failure.why.message(), "\nof seed ", failure.scenario.seed(),
      ". Shrunk, it fails so: ", SimulateInChild(shrunk, simulate).message(),
      "\nTo repeat it, give simulation_test the file that holds the following "
      "as LOCKSTEP_SIMULATION_REPLAY; to keep it, add the file to "
      "tests/simulation/found.\n",
      ToText(shrunk));
}

}  // namespace lockstep::testing
