#pragma once

#include <absl/strings/string_view.h>

#include <cstdint>
#include <string>
#include <vector>

namespace lockstep {

// A part of one tool call. The first part of a call has its id and its name,
// and no other has; the arguments of all parts concatenate to a JSON object as
// the model wrote it.
struct ToolCallDelta {
  uint32_t index = 0;  // of the call, from 0 in each choice
  std::string id = {};
  std::string name = {};
  std::string arguments = {};
};

// What a piece of a choice's text turns out to be.
struct OutputDelta {
  std::string content;
  std::string reasoning;
  std::vector<ToolCallDelta> tool_calls;

  bool empty() const {
    return content.empty() && reasoning.empty() && tool_calls.empty();
  }
};

}  // namespace lockstep
