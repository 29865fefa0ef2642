#pragma once

#include <absl/status/status.h>
#include <absl/types/span.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace lockstep::testing {

// What a device without arithmetic keeps in its pages in place of keys and
// values: for each position its token, its number, and a hash of all tokens up
// to it. So a page of another sequence, or of another place of the same one, is
// told from the right one even where the tokens are equal.
class DeviceMemory {
 public:
  DeviceMemory(int num_pages, int page_size);

  // Writes `tokens` at positions `begin` and up, behind what is at begin - 1.
  void Write(absl::Span<const int32_t> page_table, int begin,
             absl::Span<const uint32_t> tokens);

  // Positions 0 … end - 1. INTERNAL, naming the first that is not there.
  absl::Status Read(absl::Span<const int32_t> page_table, int end,
                    std::vector<uint32_t>* tokens) const;

 private:
  struct Cell {
    uint32_t token = 0;
    int position = -1;  // not written
    uint64_t prefix = 0;
  };

  size_t IndexOf(absl::Span<const int32_t> page_table, int position) const;

  const int page_size_;
  std::vector<Cell> cells_;  // [num_pages, page_size]
};

}  // namespace lockstep::testing
