#include "tests/testing/memory/peak_memory.h"

#include <malloc.h>

#include <fstream>
#include <string>

namespace lockstep::testing {
namespace {

// Of /proc/self/status: VmRSS, or VmHWM, the most that it has been.
int64_t BytesOf(const std::string& field) {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    if (word != field + ":") continue;
    int64_t kib = 0;
    status >> kib;
    return kib << 10;
  }
  return -1;
}

}  // namespace

PeakMemory::PeakMemory() {
  malloc_trim(0);  // else what was freed before would count for nothing
  std::ofstream("/proc/self/clear_refs") << "5";  // VmHWM is VmRSS again
  before_ = BytesOf("VmRSS");
}

int64_t PeakMemory::GrownBytes() const { return BytesOf("VmHWM") - before_; }

}  // namespace lockstep::testing
