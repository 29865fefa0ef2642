#pragma once

#include <array>
#include <cstdint>

namespace lockstep {

// A matrix of unsigned integers of 4 or 8 bits as checkpoints pack them: in
// words, little-endian, of several integers that are neighbours in a row or in
// a column. A view; the words are mapped.
struct PackedIntegers {
  static constexpr std::array<uint8_t, 8> kInOrder = {0, 1, 2, 3, 4, 5, 6, 7};

  const uint8_t* words = nullptr;
  int bits = 4;                   // of an integer
  int lanes_log2 = 3;             // log2 of the integers in a word
  bool lanes_are_columns = true;  // or rows
  int64_t row_stride = 0;         // words from a row, or a word's rows, …
  int64_t col_stride = 0;         // … or from a column, to the next
  bool is_signed = false;         // two's complement; 2^(bits-1) is added
  // Where in its word the integer of the n-th of neighbours lies.
  std::array<uint8_t, 8> order = kInOrder;

  int most() const { return (1 << bits) - 1; }

  int At(int64_t row, int64_t col) const {
    const int64_t lanes = lanes_are_columns ? col : row;
    const int lane = order[lanes & ((1 << lanes_log2) - 1)];
    (lanes_are_columns ? col : row) >>= lanes_log2;
    const int64_t word = row * row_stride + col * col_stride;
    const int bit = lane * bits;
    const int value =
        words[(word * bits << lanes_log2 >> 3) + bit / 8] >> (bit % 8) & most();
    return is_signed ? value ^ 1 << (bits - 1) : value;
  }
};

}  // namespace lockstep
