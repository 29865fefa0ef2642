#include "tokenizer_service/gguf/splitting_rules.h"

#include <absl/strings/str_cat.h>

#include <nlohmann/json.hpp>
#include <string>
#include <utility>

namespace lockstep::splitting {
namespace {

using Json = nlohmann::json;

// The steps that a tokenizer.json knows (pre_tokenizers of Hugging Face's
// tokenizers); a sequence cuts each piece of the step before. Expressions are
// Oniguruma's, from the tokenizer.json of the models that brought a name or
// from llama.cpp, which knows the names (src/llama-vocab.cpp,
// llm_tokenizer_bpe).

Json Split(const std::string& regex) {
  return {{"type", "Split"},
          {"pattern", {{"Regex", regex}}},
          {"behavior", "Isolated"},
          {"invert", false}};
}

Json Digits(bool each_alone) {
  return {{"type", "Digits"}, {"individual_digits", each_alone}};
}

// Writes bytes as characters; first, if it is to, cuts as GPT-2 does.
Json ByteLevel(bool cuts) {
  return {{"type", "ByteLevel"},
          {"add_prefix_space", false},
          {"trim_offsets", true},
          {"use_regex", cuts}};
}

Json Sequence(Json steps) {
  return {{"type", "Sequence"}, {"pretokenizers", std::move(steps)}};
}

Json SplitBytes(const std::string& regex) {
  return Sequence({Split(regex), ByteLevel(false)});
}

// Letters that begin words and such as go on with them. Some are both.
constexpr char kUpper[] = R"(\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M})";
constexpr char kLower[] = R"(\p{Ll}\p{Lm}\p{Lo}\p{M})";
constexpr char kMaybeContraction[] = "(?i:'s|'t|'re|'ve|'m|'ll|'d)?";

// Of words by the case of their letters, with a regex of what may follow them;
// of letters but those of `without`, a part of a class.
std::string CasedWords(const std::string& ending,
                       const std::string& without = "") {
  const std::string upper = absl::StrCat("[", kUpper, without, "]");
  const std::string lower = absl::StrCat("[", kLower, without, "]");
  const std::string before = R"([^\r\n\p{L}\p{N}]?)";
  return absl::StrCat(before, upper, "*", lower, "+", ending, "|", before,
                      upper, "+", lower, "*", ending);
}

constexpr char kAfterWords[] =
    R"(| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

// Chinese and what stands beside it in the tables.
constexpr char kHan[] = "[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+";

// Letters that have a case.
constexpr char kCasedLetters[] =
    "A-Za-z\u00b5\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u01ba\u01bc-\u01bf"
    "\u01c4-\u0293\u0295-\u02af\u0370-\u0373\u0376\u0377\u037b-\u037d"
    "\u037f\u0386\u0388-\u038a\u038c\u038e-\u03a1\u03a3-\u03f5"
    "\u03f7-\u0481\u048a-\u052f\u0531-\u0556\u10a0-\u10c5\u13a0-\u13f5"
    "\u13f8-\u13fd\u1c90-\u1cba\u1cbd-\u1cbf\u1d00-\u1d2b\u1d6b-\u1d77"
    "\u1d79-\u1d9a\u1e00-\u1f15\u1f18-\u1f1d\u1f20-\u1f45\u1f48-\u1f4d"
    "\u1f50-\u1f57\u1f59\u1f5b\u1f5d\u1f5f-\u1f7d\u1f80-\u1fb4"
    "\u1fb6-\u1fbc\u1fbe\u1fc2-\u1fc4\u1fc6-\u1fcc\u1fd0-\u1fd3"
    "\u1fd6-\u1fdb\u1fe0-\u1fec\u1ff2-\u1ff4\u1ff6-\u1ffc\u2102\u2107"
    "\u210a-\u2113\u2115\u2119-\u211d\u2124\u2126\u2128\u212a-\u212d"
    "\u212f-\u2134\u2139\u213c-\u213f\u2145-\u2149\u214e\u2183\u2184"
    "\u2c00-\u2c7b\u2c7e-\u2ce4\u2ceb-\u2cee\u2cf2\u2cf3\ua640-\ua66d"
    "\ua680-\ua69b\ua722-\ua76f\ua771-\ua787\ua78b-\ua78e\uab70-\uabbf"
    "\ufb00-\ufb06\ufb13-\ufb17\uff21-\uff3a\uff41-\uff5a"
    "\U00010400-\U0001044f\U000104b0-\U000104d3\U000104d8-\U000104fb"
    "\U00010c80-\U00010cb2\U00010cc0-\U00010cf2\U000118a0-\U000118df"
    "\U0001e900-\U0001e943";

constexpr char kChineseAndKana[] = "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+";

// Words, each with punctuation or a space before it, and punctuation.
constexpr char kPunctuatedWords[] =
    R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+)"
    R"(|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+)";

// With the line breaks behind it, and spaces.
std::string PunctuatedLines() {
  return absl::StrCat(kPunctuatedWords, R"([\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)");
}

constexpr char kBloomWords[] = R"( ?[^(\s|[.,!?)"
                               "\u2026\u3002\uff0c\u3001\u0964\u06d4\u060c"
                               R"(])]+)";

}  // namespace

Json Gpt2() { return ByteLevel(true); }

// Every digit apart, then GPT-2's rule: a space before a digit stays alone.
Json Smollm() { return Sequence({Digits(true), ByteLevel(true)}); }

// Numbers in groups of three digits.
Json Llama3() {
  return SplitBytes(
      R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3})"
      R"(| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)");
}

// Qwen 2 and 3: Llama 3's rule with single digits.
Json Qwen2() {
  return SplitBytes(
      R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N})"
      R"(| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)");
}

// Qwen 3.5: marks are parts of words.
Json Qwen35() {
  return SplitBytes(
      R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N})"
      R"(| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)");
}

// Ling: Qwen 2's rule in other words.
Json Bailing() {
  return SplitBytes(R"('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N})"
                    R"(| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+)");
}

// Qwen 2's rule, with line breaks apart from punctuation.
Json SeedCoder() {
  return SplitBytes(
      R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1})"
      R"(| ?[^\s\p{L}\p{N}\r\n]+|\s*[\r\n]+|\s+(?!\S)|\s+)");
}

// Llama 3's rule, but that numbers are cut first.
Json MiniCpm5() {
  return Sequence(
      {Split(R"(\p{N}{1,3})"),
       Split(R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}+)"
             R"(| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"),
       ByteLevel(false)});
}

// Words may be joined; numbers are in groups of three digits from their end.
Json SuperBpe() {
  return Sequence(
      {Split(R"(\p{N}+)"), Split(R"((?=(\d{3})+(?!\d)))"), ByteLevel(false)});
}

// Qwen 2's rule without contractions, as Turkish has suffixes there.
Json UfakZeka() {
  return SplitBytes(R"([^\r\n\p{L}\p{N}]?\p{L}+|\p{N})"
                    R"(| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)");
}

// Qwen 2's rule, with line breaks cut off first.
Json Laguna() {
  return Sequence(
      {Split("[^\n]+|[\n]+"),
       Split(R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N})"
             R"(| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"),
       ByteLevel(false)});
}

// Llama 3's rule, with spaces in runs of powers of two.
Json Jais2() {
  return SplitBytes(
      R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3})"
      R"(| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s{512}(?!\S))"
      R"(|\s{256}(?!\S)|\s{128}(?!\S)|\s{64}(?!\S)|\s{32}(?!\S))"
      R"(|\s{16}(?!\S)|\s{8}(?!\S)|\s{4}(?!\S)|\s{1,2}(?!\S)|\s{1})");
}

// Words may be joined, with their marks.
Json ExaoneMoe() {
  return SplitBytes(
      R"((?i:'s|'t|'re|'ve|'m|'ll|'d))"
      R"(|[^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+|\p{N})"
      R"(| ?[^\s\p{L}\p{N}]+[\r\n/]?|\s*[\r\n]|\s+(?!\S)|\s+)");
}

// What stands for images, then as GPT-2 but for digits and punctuation, which
// are apart.
Json Chameleon() {
  return Sequence({Split("<sentinel:[0-9]+>"),
                   Split("(IMGIMG)((A|B|C|D|E|F|G|H|I){1,4})Z"),
                   Split(R"(([\t\n]|    |  ))"),
                   Digits(true),
                   {{"type", "Punctuation"}, {"behavior", "Isolated"}},
                   ByteLevel(true)});
}

// GPT-4o and Phi-4-mini.
Json Gpt4o() {
  return SplitBytes(absl::StrCat(CasedWords(kMaybeContraction),
                                 R"(|\p{N}{1,3})", kAfterWords));
}

// The same, but that groups of digits are counted from the end of a number.
Json TinyAya() {
  return Sequence({Split(R"(\d{1,3}(?=(?:\d{3})*\b))"),
                   Split(absl::StrCat(CasedWords(kMaybeContraction),
                                      R"(|\p{N}{1,3})", kAfterWords)),
                   ByteLevel(false)});
}

// Chinese characters are words of their own. The model's own tokenizer is
// tiktoken (tokenization_kimi.py), which takes a piece that it knows as it is.
Json KimiK2() {
  return SplitBytes(absl::StrCat(
      R"([\p{Han}]+|)", CasedWords(kMaybeContraction, R"(&&[^\p{Han}])"),
      R"(|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"));
}

// Scripts of East Asia and their punctuation first.
Json Youtu() {
  return Sequence(
      {Split("[\uac00-\ud7a3\u3131-\u318e]+|"
             "[\uff01\u2026\u201c\u201d\u2018\u2019\u2014\uff1a\uff1b\uff0c"
             "\u3001-\u303f\ufe30-\ufe4f]+|[\u3105-\u312f]+|"
             "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+"),
       Split(absl::StrCat(CasedWords(kMaybeContraction), R"(|\p{N})",
                          kAfterWords)),
       ByteLevel(false)});
}

// Mistral's since Nemo.
Json Tekken() {
  return SplitBytes(absl::StrCat(CasedWords(""), R"(|\p{N})", kAfterWords));
}

// Words, punctuation and so on one after the other, each with a space before.
Json DeepSeekCoder() {
  return Sequence({Split("[\r\n]"), Split(R"(\s?\p{L}+)"),
                   Split(R"(\s?\p{P}+)"), Split(kHan), Digits(true),
                   ByteLevel(false)});
}

Json DeepSeekLlm() {
  return Sequence(
      {Split("[\r\n]"), Split(absl::StrCat(R"(\s?[)", kCasedLetters, "]+")),
       Split("\\s?[!-/:-~\uff01-\uff0f\uff1a-\uff5e\u2018-\u201f"
             "\u3000-\u3002]+"),
       Split(R"(\s+$)"), Split(kHan), Digits(true), ByteLevel(false)});
}

Json DeepSeekV3() {
  return Sequence({Split(R"(\p{N}{1,3})"), Split(kChineseAndKana),
                   Split(PunctuatedLines()), ByteLevel(false)});
}

// Line breaks, and in the end digits, apart.
Json Spark() {
  return Sequence(
      {Split(R"(\p{N}{1,3})"), Split(kChineseAndKana),
       Split(absl::StrCat(kPunctuatedWords, R"(|[\r\n]|\s+(?!\S)|\s+)")),
       Split(R"(\p{N})"), ByteLevel(false)});
}

// DeepSeek V3's rule, but that groups of digits are counted from the end of a
// number, and with more of Asia's scripts.
Json Afmoe() {
  return Sequence({Split(R"(\p{N}{1,3}(?=(?:\p{N}{3})*(?!\p{N})))"),
                   Split("[\u4e00-\u9fff\u3400-\u4dbf\uf900-\ufaff\u3040-\u309f"
                         "\u30a0-\u30ff\uff65-\uff9f\u2f00-\u2fdf\u0e40-\u0e7f"
                         "\u0e80-\u0eff\u1780-\u17ff\u1000-\u109f\uaa60-\uaa7f"
                         "\ua9e0-\ua9ff\uac00-\ud7af\u1100-\u11ff]+"),
                   Split(PunctuatedLines()), ByteLevel(false)});
}

// The last two see bytes as characters, some of which are numbers.
Json Falcon() {
  return Sequence({{{"type", "Punctuation"}, {"behavior", "Contiguous"}},
                   ByteLevel(true),
                   Digits(false),
                   Split("[0-9][0-9][0-9]")});
}

Json Bloom() { return SplitBytes(kBloomWords); }

// BLOOM's rule, and every digit apart.
Json Viking() {
  return Sequence({Split(kBloomWords), Digits(true), ByteLevel(false)});
}

// What llama.cpp does where its converter knew no rule: as Falcon's, on text.
Json Default() {
  return Sequence(
      {Split(R"([\p{P}$+<=>^~|]+)"),
       Split(R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+)"
             R"(|\s+(?!\S)|\s+)"),
       Split(R"(\p{N}+)"), Split("[0-9][0-9][0-9]"), ByteLevel(false)});
}

}  // namespace lockstep::splitting
