#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace lockstep::goldens {

// One prompt, and what the reference computes for it.
struct GoldenPrompt {
  std::string name;
  std::vector<uint32_t> ids;

  // Of the last logits_rows positions; [logits_rows, vocab_size], or empty.
  int logits_rows = 0;
  std::vector<float> logits;
  // The most probable ids after the prompt, best first, with their natural-log
  // probabilities; or empty.
  std::vector<std::pair<uint32_t, float>> top_logprobs;

  std::vector<uint32_t> greedy;
  // At each step of greedy, the best logit less the second best.
  std::vector<float> margins;

  // Where the ids come from, if it is known: a text, or chat messages (a JSON
  // list) that render to the text.
  std::optional<std::string> text;
  std::optional<std::string> messages;
};

// A checkpoint and its prompts.
struct GoldenCase {
  std::string name;        // "llama fp32"
  std::string model_path;  // what OpenModel takes
  std::string sha256;      // of the model's file, hex; empty: not known
  // How far an engine that computes in float32 throughout may be off, in a
  // logit or log-probability: for the order of its sums.
  float rounding = 0;
  int max_context = 0;  // what OpenModel takes, too
  std::vector<GoldenPrompt> prompts;
};

}  // namespace lockstep::goldens
