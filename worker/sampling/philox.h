#pragma once

#include <array>
#include <cstdint>

namespace lockstep {

// Philox4x32-10, a counter-based generator: 128 random bits that are a pure
// function of a 128-bit counter and a 64-bit key. Salmon, Moraes, Dror, Shaw:
// "Parallel Random Numbers: As Easy as 1, 2, 3", SC 2011, section 3.3.
constexpr std::array<uint32_t, 4> Philox4x32(std::array<uint32_t, 4> counter,
                                             std::array<uint32_t, 2> key) {
  constexpr int kRounds = 10;
  for (int round = 0; round < kRounds; ++round) {
    const uint64_t product0 = uint64_t{0xD2511F53} * counter[0];
    const uint64_t product1 = uint64_t{0xCD9E8D57} * counter[2];
    const auto high0 = static_cast<uint32_t>(product0 >> 32);
    const auto high1 = static_cast<uint32_t>(product1 >> 32);
    counter = {high1 ^ counter[1] ^ key[0], static_cast<uint32_t>(product1),
               high0 ^ counter[3] ^ key[1], static_cast<uint32_t>(product0)};
    key[0] += 0x9E3779B9;
    key[1] += 0xBB67AE85;
  }
  return counter;
}

}  // namespace lockstep
