#pragma once

#include <absl/types/span.h>

#include <cstdint>
#include <random>
#include <vector>

#include "bench/load/arrivals.h"
#include "bench/load/transport.h"

namespace lockstep::bench {

// What people ask.
struct DialogueOptions {
  int prompt_tokens = 128;  // of what one says in a turn, on average
  int output_tokens = 128;  // the same of an answer
  double spread = 0;        // 0 to 1: both are drawn evenly, within this part
  int prefixes = 0;         // that dialogues begin with, shared; 0: none
  int prefix_tokens = 0;
  int turns = 1;
  double think_s = 0;  // from an answer's end to the next turn
  int vocabulary = 256;
  uint64_t seed = 1;
};

// One dialogue: each turn's prompt is all that was said before, the answer
// included, and something new. Of equal options and number it is the same.
//
//   Dialogue dialogue(options, number, arrival);
//   Prompt prompt = dialogue.NextPrompt({});
//   if (dialogue.has_more()) prompt = dialogue.NextPrompt(answer);
class Dialogue {
 public:
  // Tokens that the arrival says go before those that are drawn.
  Dialogue(const DialogueOptions& options, uint64_t number,
           const Arrival& arrival);

  bool has_more() const { return turns_left_ > 0; }

  // REQUIRES: has_more(). `answer`: the ids of the last answer.
  Prompt NextPrompt(absl::Span<const uint32_t> answer);

 private:
  int Draw(int mean);
  void Say(int tokens, std::mt19937_64& random);

  const DialogueOptions options_;
  const Arrival arrival_;
  std::mt19937_64 random_;
  std::vector<uint32_t> said_;
  int turns_left_;
};

}  // namespace lockstep::bench
