#include "worker/model_spec/sampling_defaults.h"

#include <absl/types/span.h>
#include <gtest/gtest.h>

#include "tests/testing/gguf_writer.h"

namespace lockstep {
namespace {

using nlohmann::json;

// ToString, or the error.
std::string Read(const char* config) {
  const auto sampling =
      SamplingFromGenerationConfig(json::parse(config), "g.json");
  return sampling.ok() ? sampling->ToString()
                       : std::string(sampling.status().message());
}

TEST(SamplingDefaultsTest, OfAGenerationConfig) {
  EXPECT_EQ(Read(R"({"do_sample": true, "temperature": 0.5, "top_k": 20,
                     "top_p": 0.75, "eos_token_id": [1, 2]})"),
            "temperature=0.5 top_p=0.75 top_k=20");
  EXPECT_EQ(Read(R"({"min_p": 0.25, "repetition_penalty": 1.5,
                     "max_new_tokens": 2048})"),
            "min_p=0.25 repetition_penalty=1.5 max_tokens=2048");
  EXPECT_EQ(Read("{}"), "");
}

TEST(SamplingDefaultsTest, NothingIsSaidInSeveralWays) {
  EXPECT_EQ(Read(R"({"top_k": -1, "temperature": null})"), "top_k=0");
  EXPECT_EQ(Read(R"({"temperature": 0, "min_p": 0})"), "temperature=0 min_p=0");
}

TEST(SamplingDefaultsTest, AValueOutOfRangeIsNamed) {
  EXPECT_EQ(Read(R"({"top_p": 1.5})").substr(0, 6), "g.json");
  for (const char* config :
       {R"({"top_p": 0})", R"({"temperature": -0.5})", R"({"top_k": -2})",
        R"({"top_k": 1.5})", R"({"repetition_penalty": "x"})",
        R"({"max_new_tokens": 0})", R"({"min_p": 2})"}) {
    const std::string name(config + 2, std::string(config + 2).find('"'));
    EXPECT_NE(Read(config).find(name), std::string::npos) << Read(config);
    EXPECT_NE(Read(config).find("expected"), std::string::npos);
  }
}

std::string ReadGguf(const testing::GgufWriter& writer) {
  const std::string bytes = writer.Finish();
  const auto file = GgufFile::Parse(
      absl::MakeConstSpan(reinterpret_cast<const uint8_t*>(bytes.data()),
                          bytes.size()),
      "m.gguf");
  const auto sampling = SamplingFromGguf(**file);
  return sampling.ok() ? sampling->ToString()
                       : std::string(sampling.status().message());
}

TEST(SamplingDefaultsTest, OfGgufMetadata) {
  testing::GgufWriter writer;
  EXPECT_EQ(ReadGguf(writer), "");
  writer.AddFloat("general.sampling.temp", 0.5);
  writer.AddFloat("general.sampling.penalty_repeat", 1.25);
  writer.AddInt("general.sampling.top_k", 40);
  EXPECT_EQ(ReadGguf(writer),
            "temperature=0.5 repetition_penalty=1.25 top_k=40");
  writer.AddFloat("general.sampling.top_p", 2);
  EXPECT_NE(ReadGguf(writer).find("m.gguf"), std::string::npos);
}

}  // namespace
}  // namespace lockstep
