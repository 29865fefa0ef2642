#pragma once

#include <cstdint>

namespace lockstep::testing {

// Calls of operator new, in all its forms, since the program began, on all
// threads. A test that links this has its operators replaced:
//
//   const int64_t before = NumAllocations();
//   …
//   EXPECT_EQ(NumAllocations(), before);
//
// Any thread.
int64_t NumAllocations();

}  // namespace lockstep::testing
