#pragma once

#include <cstddef>

namespace lockstep::testing {

// A program that links replaced_new has operator new replaced, in all its
// forms, and defines this: it is called before each allocation, on the thread
// that allocates, and says how many bytes to take, at least `bytes`. It must
// not use operator new.
size_t OnNew(size_t bytes);

}  // namespace lockstep::testing
