#include "tokenizer_service/gguf/sentencepiece_json.h"

#include <algorithm>
#include <cstddef>
#include <set>
#include <string>
#include <tuple>

namespace lockstep {
namespace {

using Json = nlohmann::json;

constexpr char kSpace[] = "\u2581";

struct Merge {
  absl::string_view left, right;
  int left_characters, right_characters;
  double score;
};

// Where the character that begins at `at` ends.
size_t EndOfCharacter(absl::string_view text, size_t at) {
  do {
    ++at;
  } while (at < text.size() && (text[at] & 0xc0) == 0x80);
  return at;
}

int CountCharacters(absl::string_view text) {
  int count = 0;
  for (size_t at = 0; at < text.size(); at = EndOfCharacter(text, at)) ++count;
  return count;
}

bool ComesFirst(const Merge& a, const Merge& b) {
  return std::tie(a.score, a.left_characters, a.right_characters) >
         std::tie(b.score, b.left_characters, b.right_characters);
}

Json Replace(const std::string& what, const std::string& by) {
  return {
      {"type", "Replace"}, {"pattern", {{"String", what}}}, {"content", by}};
}

}  // namespace

Json SentencePieceMerges(const std::vector<ScoredPiece>& pieces) {
  std::set<absl::string_view> texts;
  for (const ScoredPiece& piece : pieces) texts.insert(piece.text);
  std::vector<Merge> merges;
  for (const auto& [text, score] : pieces) {
    const int characters = CountCharacters(text);
    int left_characters = 0;
    for (size_t at = 0; ++left_characters < characters;) {
      at = EndOfCharacter(text, at);
      const absl::string_view left = text.substr(0, at);
      const absl::string_view right = text.substr(at);
      if (texts.count(left) == 0 || texts.count(right) == 0) continue;
      merges.push_back(
          {left, right, left_characters, characters - left_characters, score});
    }
  }
  std::stable_sort(merges.begin(), merges.end(), ComesFirst);
  Json json = Json::array();
  for (const Merge& merge : merges) {
    json.push_back({std::string(merge.left), std::string(merge.right)});
  }
  return json;
}

Json SentencePieceNormalizer(bool space_prefix) {
  Json steps = Json::array();
  if (space_prefix) {
    steps.push_back({{"type", "Prepend"}, {"prepend", kSpace}});
  }
  steps.push_back(Replace(" ", kSpace));
  return {{"type", "Sequence"}, {"normalizers", std::move(steps)}};
}

Json SentencePieceDecoder(bool space_prefix) {
  Json steps = Json::array(
      {Replace(kSpace, " "), {{"type", "ByteFallback"}}, {{"type", "Fuse"}}});
  if (space_prefix) {
    steps.push_back(
        {{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}});
  }
  return {{"type", "Sequence"}, {"decoders", std::move(steps)}};
}

}  // namespace lockstep
