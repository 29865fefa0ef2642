#include "tokenizer_service/gguf_tokenizer.h"

#include <absl/strings/match.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "tests/testing/gguf_writer.h"

namespace lockstep {
namespace {

using Ids = std::vector<uint32_t>;
using testing::GgufWriter;

absl::StatusOr<std::unique_ptr<Tokenizer>> Open(const GgufWriter& writer) {
  const std::string bytes = writer.Finish();
  const auto file = GgufFile::Parse(
      {reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()}, "m.gguf");
  if (!file.ok()) return file.status();
  return TokenizerFromGguf(**file);
}

std::string Error(const GgufWriter& writer) {
  return std::string(Open(writer).status().message());
}

// The 256 characters of byte-level tokens are more than a test wants to see,
// so these vocabularies have a few letters only.
GgufWriter Letters(const std::string& pre) {
  GgufWriter writer;
  writer.AddString("tokenizer.ggml.model", "gpt2");
  writer.AddString("tokenizer.ggml.pre", pre);
  writer.AddStrings("tokenizer.ggml.tokens",
                    {"<s>", "</s>", "<tool>", "a", "b", "Ġ", "1", "2", "ab",
                     "Ġa", "12", "Ġ1", "[PAD]"});
  writer.AddInts("tokenizer.ggml.token_type",
                 {3, 3, 4, 1, 1, 1, 1, 1, 1, 1, 1, 1, 5});
  writer.AddStrings("tokenizer.ggml.merges", {"a b", "Ġ a", "Ġ 1", "1 2"});
  writer.AddUint("tokenizer.ggml.bos_token_id", 0);
  writer.AddUint("tokenizer.ggml.eos_token_id", 1);
  return writer;
}

Ids Encode(const GgufWriter& writer, absl::string_view text) {
  const auto tokenizer = Open(writer);
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.status();
  if (!tokenizer.ok()) return {};
  return *(*tokenizer)->Encode(text, true);
}

TEST(GgufTokenizer, SplitsAsTheFileSays) {
  EXPECT_EQ(Encode(Letters("gpt-2"), "ab a 12"), (Ids{8, 9, 11, 7}));
  // Every digit alone, the space before it too.
  EXPECT_EQ(Encode(Letters("smollm"), "ab a 12"), (Ids{8, 9, 5, 6, 7}));
  EXPECT_EQ(Encode(Letters("qwen2"), "ab a 12"), (Ids{8, 9, 5, 6, 7}));
  // Digits in threes, and BOS unless the file says otherwise.
  EXPECT_EQ(Encode(Letters("llama-bpe"), "ab a 12"), (Ids{0, 8, 9, 5, 10}));
  EXPECT_EQ(Encode(Letters("tekken"), "ab a 12"), (Ids{0, 8, 9, 5, 6, 7}));
  EXPECT_EQ(Encode(Letters("gpt-4o"), "ab a 12"), (Ids{8, 9, 5, 10}));
}

TEST(GgufTokenizer, ContractionsAreCutOffWhereTheRuleHasThem) {
  for (const auto& [pre, ids] :
       {std::pair{"qwen2", Ids{0, 1, 1, 2}}, {"ufakzeka", Ids{0, 1, 3}}}) {
    GgufWriter writer;
    writer.AddString("tokenizer.ggml.model", "gpt2");
    writer.AddString("tokenizer.ggml.pre", pre);
    writer.AddStrings("tokenizer.ggml.tokens", {"'", "l", "a", "la"});
    writer.AddStrings("tokenizer.ggml.merges", {"l a"});
    EXPECT_EQ(Encode(writer, "'lla"), ids) << pre;
  }
}

TEST(GgufTokenizer, ARuleMayHaveSeveralNames) {
  for (const auto& [name, other] : {std::pair{"smollm", "starcoder"},
                                    {"smollm", "refact"},
                                    {"smollm", "codeshell"},
                                    {"smollm", "exaone"},
                                    {"smollm", "minerva-7b"},
                                    {"smollm", "command-r"},
                                    {"gpt-2", "phi-2"},
                                    {"gpt-2", "gigachat"},
                                    {"gpt-2", "a.x-4.0"},
                                    {"gpt-2", "mellum"},
                                    {"gpt-2", "trillion"},
                                    {"gpt-2", "granite-docling"},
                                    {"gpt-2", "exaone4"},
                                    {"gpt-2", "jais"},
                                    {"gpt-2", "mpt"},
                                    {"gpt-2", "olmo"},
                                    {"llama-bpe", "llama3"},
                                    {"llama-bpe", "llama-v3"},
                                    {"llama-bpe", "falcon3"},
                                    {"llama-bpe", "pixtral"},
                                    {"llama-bpe", "midm-2.0"},
                                    {"llama-bpe", "lfm2"},
                                    {"dbrx", "smaug-bpe"},
                                    {"dbrx", "chatglm-bpe"},
                                    {"dbrx", "glm4"},
                                    {"qwen2", "deepseek-r1-qwen"},
                                    {"qwen2", "f2llmv2"},
                                    {"qwen2", "stablelm2"},
                                    {"qwen2", "kormo"},
                                    {"qwen2", "megrez"},
                                    {"qwen2", "hunyuan"},
                                    {"qwen2", "solar-open"},
                                    {"qwen2", "grok-2"},
                                    {"bailingmoe", "bailingmoe2"},
                                    {"bailingmoe", "llada-moe"},
                                    {"gpt-4o", "llama4"},
                                    {"gpt-4o", "kanana2"},
                                    {"deepseek-v3", "hunyuan-dense"},
                                    {"deepseek-v3", "joyai-llm"},
                                    {"bloom", "poro-chat"},
                                    {"bloom", "gpt3-finnish"},
                                    {"gpt-2", "jina-es"},
                                    {"gpt-2", "jina-v2-de"},
                                    {"gpt-2", "modern-bert"},
                                    {"smollm", "mellum2"},
                                    {"llama-bpe", "falcon-h1"},
                                    {"llama-bpe", "jina-v5-nano"},
                                    {"gpt-4o", "minimax-m2"},
                                    {"gpt-4o", "talkie"},
                                    {"gpt-4o", "granite-embed-multi-97m"},
                                    {"tiny_aya", "cohere2moe"},
                                    {"deepseek-v3", "hy_v4"}}) {
    EXPECT_EQ(Encode(Letters(other), "ab a 12"),
              Encode(Letters(name), "ab a 12"))
        << other;
  }
  EXPECT_EQ(Encode(Letters("dbrx"), "ab a 12"), (Ids{8, 9, 5, 10}));
}

// A model of SentencePiece's: spaces are U+2581, what no piece has are bytes.
GgufWriter Pieces() {
  GgufWriter writer;
  writer.AddString("tokenizer.ggml.model", "llama");
  writer.AddStrings("tokenizer.ggml.tokens",
                    {"<unk>", "<s>", "</s>", "<0xC3>", "<0xA9>", "\u2581", "a",
                     "b", "\u2581a", "ab", "\u2581ab", "<tool>"});
  writer.AddInts("tokenizer.ggml.token_type",
                 {2, 3, 3, 6, 6, 1, 1, 1, 1, 1, 1, 4});
  writer.AddFloats("tokenizer.ggml.scores",
                   {0, 0, 0, 0, 0, -9, -9, -9, -2, -1, -3, 0});
  writer.AddUint("tokenizer.ggml.unknown_token_id", 0);
  writer.AddUint("tokenizer.ggml.bos_token_id", 1);
  writer.AddUint("tokenizer.ggml.eos_token_id", 2);
  return writer;
}

TEST(GgufTokenizer, MergesPiecesByTheirScores) {
  EXPECT_EQ(Encode(Pieces(), "ab a"), (Ids{1, 10, 8}));
  EXPECT_EQ(Encode(Pieces(), "aab"), (Ids{1, 8, 9}));
  EXPECT_EQ(Encode(Pieces(), "é"), (Ids{1, 5, 3, 4}));
  EXPECT_EQ(Encode(Pieces(), "a<tool>b</s>"), (Ids{1, 8, 11, 5, 7, 2}));
  GgufWriter plain = Pieces();
  plain.AddBool("tokenizer.ggml.add_space_prefix", false);
  plain.AddBool("tokenizer.ggml.add_bos_token", false);
  EXPECT_EQ(Encode(plain, "ab a"), (Ids{9, 8}));
}

// Gemma 4's, by the model's name and by that of a rule.
TEST(GgufTokenizer, MergesPiecesAsTheFileListsThem) {
  for (const bool is_named : {true, false}) {
    GgufWriter writer;
    writer.AddString("tokenizer.ggml.model", is_named ? "gemma4" : "gpt2");
    if (!is_named) writer.AddString("tokenizer.ggml.pre", "sarvam-moe");
    writer.AddStrings("tokenizer.ggml.tokens",
                      {"<unk>", "<s>", "<0xC3>", "<0xA9>", "\u2581", "a", "b",
                       "\n", "ab", "\u2581a", "b\n", "\n\n"});
    writer.AddInts("tokenizer.ggml.token_type",
                   {2, 3, 6, 6, 1, 1, 1, 1, 1, 1, 1, 1});
    writer.AddStrings("tokenizer.ggml.merges",
                      {"a b", "\u2581 a", "b \n", "\n \n"});
    writer.AddUint("tokenizer.ggml.unknown_token_id", 0);
    writer.AddUint("tokenizer.ggml.bos_token_id", 1);
    EXPECT_EQ(Encode(writer, "ab ab a"), (Ids{8, 4, 8, 9}));
    EXPECT_EQ(Encode(writer, "bb\n\n\n"), (Ids{6, 10, 11}));
    EXPECT_EQ(Encode(writer, "é"), (Ids{2, 3}));
    const auto tokenizer = Open(writer);
    EXPECT_EQ(*(*tokenizer)->Decode({4, 8, 4, 2, 3}, false), " ab é");
    writer.AddBool("tokenizer.ggml.add_bos_token", true);
    EXPECT_EQ(Encode(writer, "a"), (Ids{1, 5}));
  }
}

TEST(GgufTokenizer, DecodesPiecesAsTheyWereEncoded) {
  const auto tokenizer = Open(Pieces());
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  for (const char* text : {"ab a", "é b", "  a", ""}) {
    EXPECT_EQ(*(*tokenizer)->Decode(*(*tokenizer)->Encode(text, false), false),
              text);
  }
}

TEST(GgufTokenizer, PiecesMustHaveScoresAndALength) {
  GgufWriter writer;
  writer.AddString("tokenizer.ggml.model", "llama");
  writer.AddStrings("tokenizer.ggml.tokens", {"a", "b"});
  writer.AddFloats("tokenizer.ggml.scores", {0});
  EXPECT_EQ(Error(writer),
            "m.gguf: tokenizer.ggml.scores must have a number for each of the "
            "2 tokens.");
  writer = GgufWriter();
  writer.AddString("tokenizer.ggml.model", "llama");
  writer.AddStrings("tokenizer.ggml.tokens", {std::string(513, 'a')});
  writer.AddFloats("tokenizer.ggml.scores", {0});
  EXPECT_EQ(Error(writer),
            "m.gguf: tokenizer.ggml.tokens[0] is 513 bytes long, a piece is at "
            "most 512.");
}

TEST(GgufTokenizer, AddsWhatTheFileSays) {
  GgufWriter writer = Letters("gpt-2");
  writer.AddBool("tokenizer.ggml.add_bos_token", true);
  writer.AddBool("tokenizer.ggml.add_eos_token", true);
  EXPECT_EQ(Encode(writer, "a"), (Ids{0, 3, 1}));
  writer = Letters("llama-bpe");
  writer.AddBool("tokenizer.ggml.add_bos_token", false);
  EXPECT_EQ(Encode(writer, "a"), (Ids{3}));
}

TEST(GgufTokenizer, KnowsControlAndUserDefinedTokens) {
  const auto tokenizer = Open(Letters("gpt-2"));
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  const Ids ids = *(*tokenizer)->Encode("a<tool></s>b", false);
  EXPECT_EQ(ids, (Ids{3, 2, 1, 4}));
  EXPECT_EQ(*(*tokenizer)->Decode(ids, true), "a<tool>b");
  EXPECT_EQ(*(*tokenizer)->Decode(ids, false), "a<tool></s>b");
}

TEST(GgufTokenizer, IdsThatOnlyFillUpDecodeToNothing) {
  const auto tokenizer = Open(Letters("gpt-2"));
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  EXPECT_EQ((*tokenizer)->info().vocabulary_size, 13);
  EXPECT_EQ(*(*tokenizer)->Decode({3, 12, 4}, false), "ab");
}

TEST(GgufTokenizer, HasTheFilesTemplateAndEndsOfText) {
  GgufWriter writer = Letters("gpt-2");
  writer.AddUint("tokenizer.ggml.eot_token_id", 2);
  writer.AddString("tokenizer.chat_template",
                   "{{ bos_token }}{{ eos_token }}{{ pad_token }}");
  const auto tokenizer = Open(writer);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  EXPECT_EQ((*tokenizer)->info().bos_token_id, 0);
  EXPECT_EQ((*tokenizer)->info().eos_token_ids, (Ids{1, 2}));
  EXPECT_EQ(*(*tokenizer)->RenderChat("{}"), "<s></s>");
}

TEST(GgufTokenizer, NamesWhatItDoesNotSupport) {
  EXPECT_EQ(Error(Letters("jina-v1-en")),
            "m.gguf: tokenizer.ggml.pre is \"jina-v1-en\", which is not "
            "supported; supported are default, gpt-2, phi-2, gigachat, "
            "a.x-4.0, mellum, trillion, granite-docling, exaone4, jais, "
            "jina-es, jina-de, jina-v2-es, jina-v2-de, mpt, olmo, modern-bert, "
            "smollm, starcoder, refact, codeshell, exaone, minerva-7b, "
            "mellum2, command-r, llama-bpe, llama3, llama-v3, falcon3, "
            "pixtral, midm-2.0, falcon-h1, jina-v5-nano, lfm2, dbrx, "
            "smaug-bpe, chatglm-bpe, glm4, jais-2, minicpm5, superbpe, qwen2, "
            "deepseek-r1-qwen, f2llmv2, stablelm2, kormo, megrez, hunyuan, "
            "solar-open, grok-2, ufakzeka, laguna, exaone-moe, qwen35, "
            "bailingmoe, bailingmoe2, llada-moe, seed-coder, gpt-4o, llama4, "
            "kanana2, minimax-m2, talkie, granite-embed-multi-97m, tiny_aya, "
            "cohere2moe, kimi-k2, youtu, tekken, deepseek-llm, deepseek-coder, "
            "deepseek-v3, hunyuan-dense, joyai-llm, hy_v4, spark2_5, afmoe, "
            "falcon, bloom, poro-chat, gpt3-finnish, viking, chameleon, "
            "gemma4, granite-embed-multi-311m, sarvam-moe.");
  GgufWriter writer;
  writer.AddString("tokenizer.ggml.model", "t5");
  EXPECT_EQ(Error(writer),
            "m.gguf: tokenizer.ggml.model is \"t5\", which is not supported; "
            "supported are gpt2, llama and gemma4.");
}

// A file with one thing wrong: `change` adds what it lacks.
template <typename Change>
std::string ErrorAfter(Change change) {
  GgufWriter writer;
  writer.AddString("tokenizer.ggml.model", "gpt2");
  writer.AddString("tokenizer.ggml.pre", "gpt-2");
  change(writer);
  return Error(writer);
}

TEST(GgufTokenizer, NamesTheKeyThatIsWrong) {
  const std::string errors[] = {
      ErrorAfter([](GgufWriter& w) {
        w.AddStrings("tokenizer.ggml.tokens", {"a", "b", "a"});
      }),
      ErrorAfter([](GgufWriter& w) {
        w.AddStrings("tokenizer.ggml.tokens", {"a", "\xff"});
      }),
      ErrorAfter([](GgufWriter& w) {
        w.AddStrings("tokenizer.ggml.tokens", {"a", "\xff"});
        w.AddInts("tokenizer.ggml.token_type", {1, 5});
        w.AddStrings("tokenizer.ggml.merges", {});
        w.AddUint("tokenizer.ggml.bos_token_id", 1);
        w.AddBool("tokenizer.ggml.add_bos_token", true);
      }),
      ErrorAfter([](GgufWriter& w) {
        w.AddStrings("tokenizer.ggml.tokens", {"a"});
        w.AddInts("tokenizer.ggml.token_type", {1, 1});
      }),
      ErrorAfter([](GgufWriter& w) {
        w.AddStrings("tokenizer.ggml.tokens", {"a"});
        w.AddStrings("tokenizer.ggml.merges", {});
        w.AddUint("tokenizer.ggml.eos_token_id", 1);
      }),
      ErrorAfter([](GgufWriter& w) {
        w.AddStrings("tokenizer.ggml.tokens", {"a"});
        w.AddStrings("tokenizer.ggml.merges", {});
        w.AddBool("tokenizer.ggml.add_bos_token", true);
      }),
      ErrorAfter([](GgufWriter& w) {
        w.AddStrings("tokenizer.ggml.tokens", {"a"});
        w.AddStrings("tokenizer.ggml.merges", {"a z"});
      }),
      ErrorAfter(
          [](GgufWriter& w) { w.AddStrings("tokenizer.ggml.tokens", {"a"}); }),
  };
  const char* const expected[] = {
      "tokenizer.ggml.tokens has \"a\" twice, at 0 and 2.",
      "tokenizer.ggml.tokens[1] is no valid UTF-8",
      "tokenizer.ggml.tokens[1] is no valid UTF-8",
      "tokenizer.ggml.token_type has 2 entries for 1 tokens.",
      "tokenizer.ggml.eos_token_id is 1, outside the 1 tokens.",
      "tokenizer.ggml.bos_token_id is missing",
      "m.gguf: ",
      "tokenizer.ggml.merges",
  };
  for (size_t i = 0; i < std::size(errors); ++i) {
    EXPECT_TRUE(absl::StrContains(errors[i], expected[i])) << errors[i];
    EXPECT_TRUE(absl::StrContains(errors[i], "m.gguf")) << errors[i];
  }
}

}  // namespace
}  // namespace lockstep
