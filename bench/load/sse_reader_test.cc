#include "bench/load/sse_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace lockstep::bench {
namespace {

using ::testing::ElementsAre;

TEST(SseReader, FindsTheDataHoweverTheBytesAreCut) {
  const std::string stream =
      ": ping\n\ndata: {\"a\": 1}\n\nevent: x\r\ndata:two\r\n\r\ndata: "
      "[DONE]\n\n";
  for (size_t size = 1; size <= stream.size(); ++size) {
    std::vector<std::string> found;
    SseReader reader([&](absl::string_view data) { found.emplace_back(data); });
    for (size_t i = 0; i < stream.size(); i += size) {
      reader.Read(absl::string_view(stream).substr(i, size));
    }
    EXPECT_THAT(found, ElementsAre("{\"a\": 1}", "two", "[DONE]")) << size;
  }
}

}  // namespace
}  // namespace lockstep::bench
