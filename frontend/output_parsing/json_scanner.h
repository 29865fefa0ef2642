#pragma once

#include <absl/strings/string_view.h>

#include <cstddef>
#include <string>

// JSON that a model writes, read as far as it has come. Nothing is judged but
// where a value ends: what is within it is for whoever uses it.
namespace lockstep {

enum class Scan {
  kWhole,   // read up to its end
  kMore,    // its end has not come yet
  kBroken,  // no text that follows can make it one
};

// Finds the end of an object or a list that comes in pieces.
//
//   JsonScanner scanner;
//   const size_t size = scanner.Add(text);  // of `text`, within the object
//   if (scanner.state() == Scan::kWhole) use(text.substr(size));
//
// Brackets must match and be nested at most kMaxDepth deep. Not thread-safe.
class JsonScanner {
 public:
  static constexpr size_t kMaxDepth = 64;

  // So many bytes are the object's; fewer than given only at its end, or where
  // it breaks. The first byte of all opens it.
  size_t Add(absl::string_view text);

  Scan state() const { return state_; }

 private:
  void Put(char c);
  void PutInString(char c);

  std::string open_;  // the brackets, outermost first
  bool in_string_ = false;
  bool is_escaped_ = false;
  Scan state_ = Scan::kMore;
};

// Each reads one thing from `text` at *at, after white space, and on kWhole
// moves *at behind it.
Scan ScanString(absl::string_view text, size_t* at, std::string* value);
Scan ScanValue(absl::string_view text, size_t* at);  // of any kind
Scan ScanMark(absl::string_view text, size_t* at, absl::string_view mark);

}  // namespace lockstep
