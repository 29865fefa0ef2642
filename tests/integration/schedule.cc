#include "tests/integration/schedule.h"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <random>
#include <utility>

namespace lockstep::testing {
namespace {

int CeilDivide(int dividend, int divisor) {
  return (dividend + divisor - 1) / divisor;
}

class Draws {
 public:
  Draws(uint32_t seed, const Choices& choices)
      : random_(seed), choices_(choices) {}

  Schedule DrawAll() {
    Schedule schedule;
    schedule.watched = Watched();
    schedule.arrives = Between(0, 15);
    const int max_tokens = schedule.watched.sampling().max_tokens();
    if (Chance(4)) schedule.num_resumed = Between(1, max_tokens - 1);
    schedule.limits = Limits(schedule.watched.prompt_token_ids_size() +
                             max_tokens + Between(0, 10));
    const int num_mates = Between(1, 9);
    for (int i = 0; i < num_mates; ++i) {
      schedule.mates.push_back(
          DrawMate(schedule.watched, schedule.limits.max_context));
    }
    schedule.num_ranks = OneOf(choices_.num_ranks);
    schedule.num_threads = Between(1, 4);
    schedule.isa = OneOf(choices_.isas);
    schedule.seen_rank = Between(0, schedule.num_ranks - 1);
    return schedule;
  }

 private:
  bool Chance(uint32_t n) { return random_() % n == 0; }

  int Between(int low, int high) {
    return low + static_cast<int>(random_() % (high - low + 1));
  }

  template <typename T>
  T OneOf(const std::vector<T>& values) {
    return values[random_() % values.size()];
  }

  void AddTokens(int count, v1::AddRequest* request) {
    for (int i = 0; i < count; ++i) {
      request->add_prompt_token_ids(random_() % choices_.vocab_size);
    }
  }

  // One in ten is about as long as a chunk of attention, of 512 positions.
  v1::AddRequest Watched() {
    v1::AddRequest request;
    AddTokens(Chance(10) ? Between(400, 800) : Between(1, 130), &request);
    *request.mutable_sampling() = Sampling(Between(2, 80));
    request.mutable_sampling()->set_n(1);
    // Wanted logits of a prompt keep it out of the cache.
    if (Chance(3)) request.mutable_sampling()->set_prompt_logprobs_plus_one(1);
    return request;
  }

  v1::ResolvedSampling Sampling(int max_tokens) {
    v1::ResolvedSampling sampling;
    sampling.set_temperature(0.5f * Between(0, 3));
    sampling.set_top_k(Chance(3) ? Between(1, 50) : 0);
    sampling.set_top_p(Chance(3) ? 0.8f : 1.0f);
    sampling.set_min_p(Chance(4) ? 0.02f : 0.0f);
    sampling.set_repetition_penalty(Chance(3) ? 1.3f : 1.0f);
    sampling.set_presence_penalty(Chance(4) ? 0.5f : 0.0f);
    sampling.set_frequency_penalty(Chance(4) ? 0.25f : 0.0f);
    sampling.set_seed(random_());
    sampling.set_max_tokens(max_tokens);
    sampling.set_n(Chance(6) ? 2 : 1);
    if (Chance(4)) sampling.set_logprobs_plus_one(3);
    return sampling;
  }

  // Pages for one sequence of full length and, in two schedules of three, for
  // but some tokens more, so that what grows must preempt. Middle pages, of
  // which that is most often true, come twice as often.
  SchedulerOptions Limits(int max_context) {
    SchedulerOptions limits;
    limits.max_context = std::min(max_context, choices_.max_context);
    limits.page_size = OneOf<int>({1, 4, 4, 16, 16, 64, 256});
    const int least = CeilDivide(limits.max_context, limits.page_size);
    const int most = Chance(3) ? 2 * least : CeilDivide(60, limits.page_size);
    limits.num_pages = least + Between(0, most);
    limits.max_sequences = Between(2, 8);
    limits.max_step_tokens =
        limits.max_sequences + (Chance(4) ? 600 : Between(0, 60));
    limits.max_logits_rows = limits.max_sequences + Between(4, 60);
    return limits;
  }

  // Half of them begin as the watched request does. Half are hungry: they come
  // early and take page after page, so that others are preempted.
  Mate DrawMate(const v1::AddRequest& watched, int max_context) {
    const bool is_hungry = Chance(2);
    Mate mate;
    if (Chance(2)) {
      mate.request.mutable_prompt_token_ids()->Assign(
          watched.prompt_token_ids().begin(),
          watched.prompt_token_ids().begin() +
              Between(1, watched.prompt_token_ids_size()));
    }
    const int room = max_context - 1 - mate.request.prompt_token_ids_size();
    AddTokens(Between(1, std::min(is_hungry ? 10 : 60, room)), &mate.request);
    *mate.request.mutable_sampling() =
        Sampling(is_hungry ? Between(50, 200) : Between(1, 40));
    mate.request.set_priority(is_hungry ? Between(-1, 0) : Between(-1, 1));
    mate.request.set_bypass_prefix_cache(Chance(8));
    mate.arrives = Between(0, 20);
    if (Chance(3)) mate.leaves = mate.arrives + Between(1, 40);
    return mate;
  }

  std::mt19937 random_;
  const Choices& choices_;
};

}  // namespace

Schedule DrawSchedule(uint32_t seed, const Choices& choices) {
  return Draws(seed, choices).DrawAll();
}

Schedule Embedded(Schedule schedule, v1::Pooling pooling, int hidden_size) {
  const auto embed = [&](v1::AddRequest* request) {
    v1::ResolvedEmbedding& embedding = *request->mutable_embedding();
    embedding.set_pooling(pooling);
    embedding.set_normalize(pooling == v1::LAST_TOKEN);
    embedding.set_dimensions(hidden_size);
    request->clear_sampling();
    request->mutable_sampling()->set_n(1);
  };
  embed(&schedule.watched);
  schedule.num_resumed = 0;
  for (size_t i = 0; i < schedule.mates.size(); i += 2) {
    embed(&schedule.mates[i].request);
  }
  return schedule;
}

Schedule Alone(const Schedule& schedule, int num_ranks) {
  Schedule alone;
  alone.watched = schedule.watched;
  if (!alone.watched.has_embedding()) {
    alone.watched.mutable_sampling()->set_prompt_logprobs_plus_one(1);
  }
  const int max_context = schedule.limits.max_context;
  alone.limits = {.num_pages = CeilDivide(max_context, 16),
                  .page_size = 16,
                  .max_step_tokens = max_context,
                  .max_sequences = 1,
                  .max_logits_rows = max_context,
                  .max_context = max_context};
  alone.num_ranks = num_ranks;
  return alone;
}

std::string Describe(const Schedule& schedule) {
  const SchedulerOptions& limits = schedule.limits;
  std::string text = absl::StrCat(
      schedule.num_ranks, " ranks of ", schedule.num_threads, " threads, ",
      schedule.isa, ", logits of rank ", schedule.seen_rank, "\n",
      limits.num_pages, " pages of ", limits.page_size, ", a step at most ",
      limits.max_step_tokens, " tokens, ", limits.max_logits_rows, " rows, ",
      limits.max_sequences, " sequences; context ", limits.max_context,
      "\nwatched: arrives ", schedule.arrives, ", resumes ",
      schedule.num_resumed, ", prompt of ",
      schedule.watched.prompt_token_ids_size(), ", ",
      schedule.watched.sampling().ShortDebugString());
  for (const Mate& mate : schedule.mates) {
    const auto& prompt = mate.request.prompt_token_ids();
    const auto& watched = schedule.watched.prompt_token_ids();
    const auto shared = std::mismatch(prompt.begin(), prompt.end(),
                                      watched.begin(), watched.end());
    absl::StrAppend(&text, "\nmate: arrives ", mate.arrives,
                    mate.leaves == Mate::kStays
                        ? ""
                        : absl::StrCat(", leaves ", mate.leaves),
                    ", priority ", mate.request.priority(),
                    mate.request.bypass_prefix_cache() ? ", not cached" : "",
                    ", prompt of ", prompt.size(), ", the first ",
                    shared.first - prompt.begin(), " as watched, ",
                    mate.request.sampling().ShortDebugString());
  }
  return text;
}

}  // namespace lockstep::testing
