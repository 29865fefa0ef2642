#include "tests/testing/output/output_cases.h"

#include <absl/strings/str_cat.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <random>
#include <utility>

#include "frontend/output_parsing/marks.h"
#include "frontend/output_parsing/output_parser.h"

namespace lockstep::testing {
namespace {

std::string Describe(const OutputFormat& format, bool starts_in_reasoning,
                     bool several, const std::vector<std::string>& pieces) {
  OutputParserOptions options;
  options.has_tools = true;
  options.calls.names = {"f", "get_weather", "g"};
  options.calls.several = several;
  options.starts_in_reasoning = starts_in_reasoning;
  options.calls.make_id = [n = 0]() mutable { return absl::StrCat("id", n++); };
  const auto parser = MakeOutputParser(format, std::move(options));
  std::string content, reasoning;
  std::vector<ToolCallDelta> calls;
  const auto take = [&](const OutputDelta& delta) {
    content += delta.content;
    reasoning += delta.reasoning;
    for (const ToolCallDelta& part : delta.tool_calls) {
      if (part.index == calls.size()) {
        EXPECT_FALSE(part.id.empty());
        EXPECT_FALSE(part.name.empty());
        calls.push_back(part);
      } else {
        EXPECT_EQ(part.index + 1, calls.size());
        EXPECT_EQ(part.id + part.name, "");
        calls.back().arguments += part.arguments;
      }
    }
  };
  for (const std::string& piece : pieces) {
    OutputDelta delta;
    parser->Add(piece, &delta);
    take(delta);
  }
  OutputDelta delta;
  parser->Finish(&delta);
  take(delta);
  EXPECT_EQ(parser->num_begun_calls(), calls.size());
  std::string lines;
  if (!reasoning.empty()) absl::StrAppend(&lines, "thinks ", reasoning, "\n");
  if (!content.empty()) absl::StrAppend(&lines, "says ", content, "\n");
  for (const ToolCallDelta& call : calls) {
    absl::StrAppend(&lines, "calls ", call.name, " ", call.id, " ",
                    call.arguments, "\n");
  }
  if (parser->num_whole_calls() < calls.size()) {
    absl::StrAppend(&lines, parser->num_whole_calls(), " of ", calls.size(),
                    " whole\n");
  }
  return lines;
}

std::string Parse(const OutputCase& c, const std::vector<std::string>& pieces) {
  return Describe(c.format, c.starts_in_reasoning, c.several_calls, pieces);
}

uint64_t Seed() {
  const char* value = std::getenv("LOCKSTEP_TEST_SEED");
  return value == nullptr ? std::random_device{}()
                          : std::strtoull(value, nullptr, 10);
}

std::vector<std::string> Cut(const std::string& text, std::mt19937_64& random) {
  std::vector<std::string> pieces;
  const size_t most = 1 + random() % 12 + text.size() / 64;
  for (size_t at = 0; at < text.size();) {
    const size_t size = 1 + random() % most;
    pieces.push_back(text.substr(at, size));
    at += size;
  }
  return pieces;
}

}  // namespace

void ExpectOutputs(const std::vector<OutputCase>& cases) {
  const uint64_t seed = Seed();
  std::printf("LOCKSTEP_TEST_SEED=%llu\n",
              static_cast<unsigned long long>(seed));
  std::mt19937_64 random(seed);
  for (const OutputCase& c : cases) {
    SCOPED_TRACE(
        absl::StrCat(c.format.ToString(), ": ", c.text.substr(0, 400)));
    EXPECT_EQ(Parse(c, {c.text}), c.expected);
    std::vector<std::string> bytes;
    for (const char byte : c.text) bytes.push_back(std::string(1, byte));
    if (bytes.size() < kMaxHeldBytes) {
      EXPECT_EQ(Parse(c, bytes), c.expected);
    }
    for (int i = 0; i < 20; ++i) {
      EXPECT_EQ(Parse(c, Cut(c.text, random)), c.expected);
    }
  }
}

}  // namespace lockstep::testing
