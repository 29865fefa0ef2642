#include "tests/testing/async_device/device_memory.h"

#include <absl/strings/str_cat.h>

namespace lockstep::testing {
namespace {

// FNV-1a (Fowler, Noll, Vo), over words.
uint64_t Extend(uint64_t prefix, uint32_t token) {
  return (prefix ^ (uint64_t{token} + 1)) * 0x100000001b3;
}

}  // namespace

DeviceMemory::DeviceMemory(int num_pages, int page_size)
    : page_size_(page_size),
      cells_(static_cast<size_t>(num_pages) * page_size) {}

void DeviceMemory::Write(absl::Span<const int32_t> page_table, int begin,
                         absl::Span<const uint32_t> tokens) {
  uint64_t prefix =
      begin == 0 ? 0 : cells_[IndexOf(page_table, begin - 1)].prefix;
  int position = begin;
  for (const uint32_t token : tokens) {
    prefix = Extend(prefix, token);
    cells_[IndexOf(page_table, position)] = {token, position, prefix};
    ++position;
  }
}

absl::Status DeviceMemory::Read(absl::Span<const int32_t> page_table, int end,
                                std::vector<uint32_t>* tokens) const {
  tokens->clear();
  uint64_t prefix = 0;
  for (int position = 0; position < end; ++position) {
    const Cell& cell = cells_[IndexOf(page_table, position)];
    prefix = Extend(prefix, cell.token);
    if (cell.position != position || cell.prefix != prefix) {
      return absl::InternalError(absl::StrCat(
          "page ", page_table[position / page_size_], " holds position ",
          cell.position, " of some sequence instead of position ", position,
          " of this one"));
    }
    tokens->push_back(cell.token);
  }
  return absl::OkStatus();
}

size_t DeviceMemory::IndexOf(absl::Span<const int32_t> page_table,
                             int position) const {
  const size_t page = page_table.at(position / page_size_);
  return page * page_size_ + position % page_size_;
}

}  // namespace lockstep::testing
