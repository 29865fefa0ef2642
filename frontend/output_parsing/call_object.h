#pragma once

#include <absl/strings/string_view.h>

#include <cstddef>
#include <optional>
#include <string>

#include "frontend/output_parsing/json_scanner.h"

// The JSON object as which most models write a call: {"name": "f",
// "arguments": {…}}, where some say "parameters", and "id" may be there.
namespace lockstep {

struct CallHeader {
  size_t size = 0;  // bytes read
  std::string name = {};
  std::string id = {};  // empty: the model gave none
  // Where they are known; else they are the JSON object that begins at `size`.
  std::optional<std::string> arguments = {};
};

enum class OtherMembers { kIgnored, kBreakIt };

// Reads such objects, one after the other, around their arguments.
//
//   CallObjectReader reader(OtherMembers::kIgnored);
//   reader.ReadCall(text, at, &call);  // again, until it is not kMore
//   …                                  // the arguments, if they follow
//   reader.ReadEnd(text, &at);         // the rest of the object
//
// Not thread-safe.
class CallObjectReader {
 public:
  // What a member of another name does.
  explicit CallObjectReader(OtherMembers others) : others_(others) {}

  // Up to the arguments; where these come before the name, or not at all, up to
  // the end of the object.
  Scan ReadCall(absl::string_view text, size_t at, CallHeader* call);

  // What is left of the object; on kWhole *at is behind it.
  Scan ReadEnd(absl::string_view text, size_t* at) const;

 private:
  Scan ReadMember(absl::string_view text, const std::string& key, size_t* at,
                  CallHeader* call) const;

  const OtherMembers others_;
  bool is_open_ = false;  // the object, behind the arguments
};

}  // namespace lockstep
