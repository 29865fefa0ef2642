#pragma once

#include <cstddef>
#include <cstdint>

namespace lockstep::bench {

// A loop over one instruction, in more independent chains than it has latency:
// nothing but that instruction's rate limits it.
struct PeakLoop {
  void (*run)(int64_t rounds) = nullptr;  // null: not of this instruction set
  double operations = 0;  // of a round; a multiply-add counts as two
};

// Reads every byte once.
using ReadLoop = void (*)(const char* begin, size_t bytes);

// The loops of one instruction set, compiled for it: call only where the
// processor has the set and, for all but fp32, the instruction. Any thread.
struct PeakLoops {
  static constexpr int kNumReads = 3;
  // ReadLoops take a multiple of this.
  static constexpr size_t kReadBytes = 512;

  PeakLoop fp32;   // fused multiply-add
  PeakLoop bf16;   // vdpbf16ps
  PeakLoop int16;  // vpdpwssd
  PeakLoop int8;   // vpdpbusd
  // As the hardware fetches ahead, and with two ways of asking for it: which is
  // fastest differs between processors.
  ReadLoop reads[kNumReads];
};

const PeakLoops& Avx2PeakLoops();
const PeakLoops& Avx512PeakLoops();

}  // namespace lockstep::bench
