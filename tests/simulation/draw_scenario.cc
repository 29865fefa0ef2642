#include "tests/simulation/draw_scenario.h"

#include <algorithm>
#include <random>
#include <utility>

namespace lockstep::testing {
namespace {

class Draws {
 public:
  Draws(uint64_t seed, int most_arrivals) : random_(seed) {
    scenario_.set_seed(seed);
    scenario_.set_num_ranks(Between(2, 8));
    DrawLimits();
    uint64_t now = 0;
    for (int left = Between(1, most_arrivals); left > 0; --left) {
      AddArrival(now);
      // Together, one after the other, or after all is done.
      if (Chance(2)) now += Between(0, Chance(6) ? 400 : 8);
    }
    if (Chance(8)) {
      v1::RankMessage message;
      message.mutable_stop();
      AddEvent(Between(0, static_cast<int>(now) + 10), std::move(message));
    }
    std::stable_sort(
        scenario_.mutable_events()->begin(), scenario_.mutable_events()->end(),
        [](const Event& a, const Event& b) { return a.at() < b.at(); });
  }

  Scenario Take() { return std::move(scenario_); }

 private:
  bool Chance(uint32_t n) { return random_() % n == 0; }
  int Between(int low, int high) {
    return low + static_cast<int>(random_() % (high - low + 1));
  }

  // Pages for one sequence of full length and a few more.
  void DrawLimits() {
    Limits& limits = *scenario_.mutable_limits();
    limits.set_page_size(1 << (Chance(4) ? Between(0, 8) : Between(1, 3)));
    limits.set_max_sequences(Between(1, 8));
    limits.set_max_step_tokens(limits.max_sequences() +
                               Between(0, Chance(2) ? 4 : 40));
    limits.set_max_logits_rows(limits.max_sequences() + Between(0, 10));
    limits.set_max_context(Between(8, 72));
    const int least =
        (limits.max_context() + limits.page_size() - 1) / limits.page_size();
    limits.set_num_pages(least + Between(0, Chance(3) ? 2 * least : 2));
  }

  void AddEvent(uint64_t at, v1::RankMessage message) {
    Event& event = *scenario_.add_events();
    event.set_at(at);
    *event.mutable_message() = std::move(message);
  }

  void AddArrival(uint64_t now) {
    const uint64_t number = ++num_requests_;
    v1::RankMessage message;
    DrawRequest(message.mutable_add());
    message.mutable_add()->set_request(number);
    const uint32_t n = message.add().sampling().n();
    AddEvent(now, std::move(message));
    if (Chance(4)) AddAbort(now, number, n);
    if (Chance(40)) AddAbort(now, num_requests_ + 1000, n);
  }

  // Some come before their request, as those of a request that was never added.
  void AddAbort(uint64_t now, uint64_t number, uint32_t n) {
    v1::RankMessage message;
    v1::AbortSequences& abort = *message.mutable_abort();
    abort.set_request(number);
    abort.set_cause(Chance(2) ? v1::DEADLINE : v1::CLIENT_CANCELLED);
    if (Chance(3)) {
      for (uint32_t choice = 0; choice <= n; ++choice) {
        if (Chance(2)) abort.add_choices(choice);
      }
    }
    const uint64_t at = now + Between(0, Chance(2) ? 3 : 60);
    if (Chance(6)) AddEvent(at, message);
    AddEvent(at, std::move(message));
  }

  void DrawRequest(v1::AddRequest* request) {
    const int max_context = scenario_.limits().max_context();
    const int size = Between(1, Chance(2) ? max_context / 4 : max_context - 1);
    // Few beginnings, so that prefixes are shared.
    const uint32_t first = 100 * Between(1, 3);
    for (int i = 0; i < size; ++i) request->add_prompt_token_ids(first + i);
    if (Chance(2)) request->set_prompt_token_ids(Between(0, size - 1), 5);
    constexpr int kPriorities[] = {-100, -1, 0, 0, 0, 0, 1, 100};
    request->set_priority(kPriorities[random_() % std::size(kPriorities)]);
    request->set_bypass_prefix_cache(Chance(8));
    v1::ResolvedSampling& sampling = *request->mutable_sampling();
    const int room = max_context - size;
    sampling.set_max_tokens(Chance(2) ? Between(1, room) : 1000);
    sampling.set_seed(Between(0, 3));
    sampling.set_n(Chance(5) ? Between(2, 4) : 1);
    if (wants_prompt_logprobs_ && Chance(4)) {
      sampling.set_prompt_logprobs_plus_one(1);
    }
    // About one token in twenty ends such a choice.
    if (Chance(3)) {
      for (uint32_t id = 0; id < 50; ++id) sampling.add_stop_token_ids(id);
    }
    if (sampling.n() == 1 && Chance(6)) {
      const int most = std::min<int>(room, sampling.max_tokens());
      for (int i = Between(0, most); i > 0; --i) {
        request->add_resume_token_ids(9);
      }
    }
  }

  std::mt19937_64 random_;
  Scenario scenario_;
  const bool wants_prompt_logprobs_ = Chance(3);
  uint64_t num_requests_ = 0;
};

}  // namespace

Scenario DrawScenario(uint64_t seed) {
  return Draws(seed, /*most_arrivals=*/60).Take();
}

Scenario DrawFaultyScenario(Fault::Kind kind, uint64_t seed) {
  Scenario scenario = DrawScenario(seed);
  std::mt19937_64 random(seed ^ kind);
  Fault& fault = *scenario.mutable_fault();
  fault.set_kind(kind);
  fault.set_rank(1 + random() % (scenario.num_ranks() - 1));
  fault.set_step(1 + random() % 60);
  fault.set_choice(random());
  return scenario;
}

Scenario Overlapped(Scenario scenario) {
  std::mt19937_64 random(scenario.seed());
  scenario.mutable_limits()->set_steps_in_flight(2);
  // Then most requests leave nothing to the host, or steps would not overlap.
  const bool host_samples = random() % 4 == 0;
  scenario.mutable_limits()->set_host_samples(host_samples);
  for (Event& event : *scenario.mutable_events()) {
    if (!event.message().has_add()) continue;
    v1::AddRequest& add = *event.mutable_message()->mutable_add();
    const bool is_plain = host_samples && random() % 8 != 0;
    if (is_plain) add.mutable_sampling()->set_repetition_penalty(1);
    if (!is_plain && random() % 8 == 0) add.set_grammar(1);
    if (!is_plain && random() % 4 == 0) {
      add.mutable_sampling()->set_logprobs_plus_one(2);
    }
  }
  return scenario;
}

Scenario DrawOverlapScenario(uint64_t seed) {
  Scenario scenario = Overlapped(Draws(seed, /*most_arrivals=*/8).Take());
  std::mt19937_64 random(seed ^ Fault::FAILING_CALL);
  if (random() % 4 == 0) {
    scenario.mutable_fault()->set_kind(Fault::FAILING_CALL);
    scenario.mutable_fault()->set_step(1 + random() % 60);
  }
  return scenario;
}

}  // namespace lockstep::testing
