#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "third_party/text/lockstep_text.h"

namespace {

constexpr size_t kNumTokens = 261;
constexpr uint32_t kEnd = 260;
constexpr int kMostSteps = 40;
using Mask = std::array<uint32_t, (kNumTokens + 31) / 32>;

void Require(bool holds) {
  if (!holds) __builtin_trap();
}

// A token for each byte, a few of several, one that is special, and the end.
LtGrammarVocabulary* MakeVocabulary() {
  std::string bytes;
  std::vector<uint32_t> ends;
  std::vector<uint8_t> kinds;
  const auto add = [&](const std::string& token, uint8_t kind) {
    bytes += token;
    ends.push_back(static_cast<uint32_t>(bytes.size()));
    kinds.push_back(kind);
  };
  for (int byte = 0; byte < 256; ++byte) {
    add(std::string(1, static_cast<char>(byte)), LT_TOKEN_TEXT);
  }
  for (const char* token : {"{\"", "\": ", "true"}) add(token, LT_TOKEN_TEXT);
  add("<tool>", LT_TOKEN_TEXT | LT_TOKEN_SPECIAL);
  add("<end>", LT_TOKEN_TEXT);
  LtGrammarVocabulary* vocabulary = nullptr;
  LtBytes error = {};
  Require(lt_grammar_vocabulary_new(
              reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size(),
              ends.data(), kinds.data(), ends.size(), &kEnd, 1, &vocabulary,
              &error) == LT_OK);
  return vocabulary;
}

bool Allows(const Mask& mask, uint32_t id) {
  return (mask[id / 32] >> (id % 32) & 1) != 0;
}

// The first id from `from` on, around the end, that is allowed: there is one.
uint32_t Choose(const Mask& mask, uint32_t from) {
  for (uint32_t i = 0; i < kNumTokens; ++i) {
    const uint32_t id = (from + i) % kNumTokens;
    if (Allows(mask, id)) return id;
  }
  __builtin_trap();
}

// Whatever a mask allows can be consumed, and the end exactly where the answer
// is complete.
void Walk(LtMatcher* matcher, const uint8_t* data, size_t size) {
  LtBytes error = {};
  for (int step = 0; step < kMostSteps; ++step) {
    Mask mask;
    const LtResult found =
        lt_matcher_mask(matcher, mask.data(), mask.size(), &error);
    if (found != LT_OK) break;  // beyond the limits
    bool is_accepting = false;
    Require(lt_matcher_is_accepting(matcher, &is_accepting, &error) == LT_OK);
    Require(is_accepting == Allows(mask, kEnd));
    const uint32_t id = Choose(mask, data[step % size] * 7u + step);
    if (id == kEnd) break;
    size_t consumed = 0;
    const LtResult followed =
        lt_matcher_consume(matcher, &id, 1, &consumed, &error);
    if (followed != LT_OK) break;
    Require(consumed == 1);
  }
  lt_bytes_free(&error);
}

}  // namespace

// The first byte is the kind, the rest a grammar. It is refused or works; it
// never panics, and never takes the process with it.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static LtGrammarVocabulary* const vocabulary = MakeVocabulary();
  if (size < 2) return 0;
  LtMatcher* matcher = nullptr;
  LtBytes error = {};
  const LtResult compiled = lt_matcher_new(
      vocabulary, data[0] % 4, data + 1, size - 1, &matcher, &error);
  Require(compiled == LT_OK || error.size > 0);
  lt_bytes_free(&error);
  if (compiled != LT_OK) return 0;
  LtMatcher* clone = nullptr;
  Require(lt_matcher_clone(matcher, &clone, &error) == LT_OK);
  Walk(clone, data, size);
  lt_matcher_free(clone);
  lt_matcher_free(matcher);
  return 0;
}
