#include "bench/text_table.h"

#include <algorithm>

namespace lockstep::bench {
namespace {

constexpr int kGap = 2;

}  // namespace

std::string TextTable::ToText() const {
  std::vector<size_t> widths;
  if (!rows_.empty()) widths.resize(rows_.front().size());
  for (const std::vector<std::string>& row : rows_) {
    if (row.size() < widths.size()) continue;
    for (size_t i = 0; i < widths.size(); ++i) {
      widths[i] = std::max(widths[i], row[i].size());
    }
  }
  std::string text;
  for (const std::vector<std::string>& row : rows_) {
    for (size_t i = 0; i < row.size(); ++i) {
      const size_t width = i < widths.size() ? widths[i] : 0;
      const std::string padding(width - std::min(width, row[i].size()), ' ');
      const bool is_first = i == 0;
      const bool is_note = i + 1 == row.size() && row.size() < widths.size();
      if (!is_first) text.append(kGap, ' ');
      if (!is_first && !is_note) text += padding;
      text += row[i];
      if (is_first) text += padding;
    }
    text += '\n';
  }
  return text;
}

}  // namespace lockstep::bench
