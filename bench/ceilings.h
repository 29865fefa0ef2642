#pragma once

#include <cstdint>
#include <string>

namespace lockstep::bench {

// The most this machine does with a number of threads, measured: the best of
// many short passes of each loop. All kernels and steps are held against these.
struct Ceilings {
  int threads = 0;
  // Operations a second; a multiply-add counts as two. 0: the processor has no
  // such instruction.
  double fp32 = 0;   // fused multiply-add
  double bf16 = 0;   // vdpbf16ps
  double int16 = 0;  // vpdpwssd
  double int8 = 0;   // vpdpbusd
  // Bytes a second.
  double dram_read = 0;
  double l3_read = 0;
  int64_t l3_bytes = 0;  // its size
};

// Takes about a second and 256 MiB (more where the L3 is large). REQUIRES: the
// processor has AVX2.
Ceilings MeasureCeilings(int threads);

// One line: "2 threads: fp32 236, … G operations/s; DRAM 40.1, L3 110.2 GB/s".
std::string ToText(const Ceilings& ceilings);

}  // namespace lockstep::bench
