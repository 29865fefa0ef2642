#include "tests/testing/die_in_call.h"

#include <sys/mman.h>
#include <unistd.h>

#include <csignal>

namespace lockstep::testing {

void DieInAllReduce(Collective* collective) {
  constexpr size_t kBytes = kFatalAllReduceFloats * sizeof(float);
  // The second half of the tensor can not be touched.
  void* const memory = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  auto* const floats = static_cast<float*>(memory);
  for (size_t i = 0; i < kFatalAllReduceFloats / 2; ++i) floats[i] = 1;
  mprotect(floats + kFatalAllReduceFloats / 2, kBytes / 2, PROT_NONE);
  std::signal(SIGSEGV, [](int) { kill(getpid(), SIGKILL); });
  (void)collective->AllReduceSum({floats, kFatalAllReduceFloats});
  _exit(1);
}

}  // namespace lockstep::testing
