#include "bench/text_table.h"

#include <gtest/gtest.h>

namespace lockstep::bench {
namespace {

TEST(TextTable, AlignsColumnsAndLetsANoteRunOn) {
  TextTable table;
  table.Add({"workload", "tokens/s", "roof"});
  table.Add({"pp512", "1234.5", "90%"});
  table.Add({"ctx16384", "does not fit the context of the model"});
  EXPECT_EQ(table.ToText(),
            "workload  tokens/s  roof\n"
            "pp512       1234.5   90%\n"
            "ctx16384  does not fit the context of the model\n");
}

TEST(TextTable, OfNothingIsNothing) { EXPECT_EQ(TextTable().ToText(), ""); }

}  // namespace
}  // namespace lockstep::bench
