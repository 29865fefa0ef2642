#include "bench/load/dialogue.h"

#include <algorithm>
#include <cmath>

namespace lockstep::bench {
namespace {

// Keeps the seeds of dialogues and of prefixes apart.
constexpr uint64_t kPrefixes = uint64_t{1} << 63;

std::mt19937_64 RandomOf(uint64_t seed, uint64_t number) {
  std::seed_seq mixed{seed, number, number >> 32};
  return std::mt19937_64(mixed);
}

}  // namespace

Dialogue::Dialogue(const DialogueOptions& options, uint64_t number,
                   const Arrival& arrival)
    : options_(options),
      arrival_(arrival),
      random_(RandomOf(options.seed, number)),
      turns_left_(options.turns) {
  if (options_.prefixes == 0) return;
  std::uniform_int_distribution<uint64_t> which(0, options_.prefixes - 1);
  std::mt19937_64 prefix = RandomOf(options_.seed, kPrefixes + which(random_));
  Say(options_.prefix_tokens, prefix);
}

Prompt Dialogue::NextPrompt(absl::Span<const uint32_t> answer) {
  --turns_left_;
  said_.insert(said_.end(), answer.begin(), answer.end());
  Say(arrival_.prompt_tokens > 0 ? arrival_.prompt_tokens
                                 : Draw(options_.prompt_tokens),
      random_);
  return {.ids = said_,
          .output_tokens = arrival_.output_tokens > 0
                               ? arrival_.output_tokens
                               : Draw(options_.output_tokens)};
}

int Dialogue::Draw(int mean) {
  const int most = static_cast<int>(std::lround(mean * options_.spread));
  std::uniform_int_distribution<int> drawn(mean - most, mean + most);
  return std::max(1, drawn(random_));
}

void Dialogue::Say(int tokens, std::mt19937_64& random) {
  std::uniform_int_distribution<uint32_t> id(0, options_.vocabulary - 1);
  for (int i = 0; i < tokens; ++i) said_.push_back(id(random));
}

}  // namespace lockstep::bench
