#include "frontend/discovery/line_splitter.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace lockstep {
namespace {

class LineSplitterTest : public ::testing::Test {
 protected:
  absl::Status Put(absl::string_view piece) {
    return lines_.Put(piece, [this](absl::string_view line) {
      seen_.emplace_back(line);
      return line == "bad" ? absl::DataLossError(line) : absl::OkStatus();
    });
  }

  LineSplitter lines_{5};
  std::vector<std::string> seen_;
};

TEST_F(LineSplitterTest, LinesAreWholeWhateverTheyComeIn) {
  for (const char* piece : {"", "ab\nc", "", "d", "ef\n", "\n", "12345\nx"}) {
    EXPECT_TRUE(Put(piece).ok()) << piece;
  }
  EXPECT_EQ(seen_, (std::vector<std::string>{"ab", "cdef", "", "12345"}));
}

TEST_F(LineSplitterTest, ALineHasABound) {
  EXPECT_TRUE(Put("1234").ok());
  EXPECT_EQ(Put("56"),
            absl::ResourceExhaustedError("a line has more than 5 bytes"));
  EXPECT_TRUE(seen_.empty());
}

TEST_F(LineSplitterTest, TheReadersErrorEndsIt) {
  EXPECT_EQ(Put("a\nbad\nb\n"), absl::DataLossError("bad"));
  EXPECT_EQ(seen_, (std::vector<std::string>{"a", "bad"}));
}

}  // namespace
}  // namespace lockstep
