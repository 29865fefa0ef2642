#pragma once

#include <absl/status/status.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/string_view.h>

#include <cstddef>
#include <functional>
#include <string>

#include "common/status_macros.h"

namespace lockstep {

// Cuts a stream into its lines, whatever pieces it comes in.
//
//   LineSplitter lines(kMostBytes);
//   LOCKSTEP_RETURN_IF_ERROR(lines.Put(piece, [&](absl::string_view line)
//   {…}));
//
// Holds at most the beginning of one line, of `most_bytes`. Not thread-safe.
class LineSplitter {
 public:
  using OnLine = std::function<absl::Status(absl::string_view line)>;

  explicit LineSplitter(size_t most_bytes) : most_bytes_(most_bytes) {}

  // Calls `on_line` with each line that ends in `piece`, without its '\n'. The
  // error is the first of `on_line`'s, or RESOURCE_EXHAUSTED for a line that is
  // too long; there are no more calls then.
  absl::Status Put(absl::string_view piece, const OnLine& on_line) {
    while (!piece.empty()) {
      const size_t end = piece.find('\n');
      const absl::string_view part = piece.substr(0, end);
      if (begun_.size() + part.size() > most_bytes_) {
        return absl::ResourceExhaustedError(
            absl::StrCat("a line has more than ", most_bytes_, " bytes"));
      }
      begun_.append(part.data(), part.size());
      if (end == absl::string_view::npos) break;
      piece.remove_prefix(end + 1);
      LOCKSTEP_RETURN_IF_ERROR(on_line(begun_));
      begun_.clear();
    }
    return absl::OkStatus();
  }

 private:
  const size_t most_bytes_;
  std::string begun_;
};

}  // namespace lockstep
