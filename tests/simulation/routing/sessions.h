#pragma once

#include <cstdint>
#include <deque>
#include <random>
#include <vector>

namespace lockstep::testing {

// A dialogue: what it has said so far is the beginning of what it says next.
struct Session {
  struct Part {
    uint64_t content;  // equal ones have equal tokens
    int64_t tokens;
  };

  std::vector<Part> parts;
  int turns_left = 0;
  int64_t output_tokens = 0;  // of the current turn
};

// Draws dialogues as services have them:
//   60 %  chats of a few turns, with one of 50 system prompts of 300 to 1500
//         tokens, some of them used much more often than others;
//   25 %  questions on one of 3000 documents of 1500 to 3500 tokens;
//   15 %  prompts of 200 to 2000 tokens that nobody else has.
// Answers have 200 tokens on average. Not thread-safe.
class Sessions {
 public:
  explicit Sessions(uint64_t seed) : random_(seed) {}

  Session Begin();
  // The next turn, after an answer. REQUIRES: there is one.
  void GoOn(Session* session);

  double Exponential(double mean) {
    return std::exponential_distribution<double>(1 / mean)(random_);
  }

 private:
  int64_t Draw(int64_t least, int64_t most) {
    return std::uniform_int_distribution<int64_t>(least, most)(random_);
  }
  // 0 to `most`, i with a probability of about 1 / (i + 1).
  uint64_t DrawSkewed(uint64_t most);
  Session::Part Unique(int64_t tokens) { return {next_content_++, tokens}; }
  void DrawOutput(Session* session);

  std::mt19937_64 random_;
  uint64_t next_content_ = 1 << 20;
};

// The token ids of a session's prompt.
std::vector<uint32_t> PromptOf(const Session& session);

}  // namespace lockstep::testing
