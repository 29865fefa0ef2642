#pragma once

#include <string>
#include <utility>
#include <vector>

namespace lockstep::bench {

// Columns as wide as what is in them, two spaces apart; the first is flush
// left, the others flush right. The last cell of a row that has fewer cells
// than the first row is as long as it likes.
class TextTable {
 public:
  void Add(std::vector<std::string> cells) {
    rows_.push_back(std::move(cells));
  }

  // A line a row.
  std::string ToText() const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace lockstep::bench
