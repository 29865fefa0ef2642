#pragma once

#include <absl/strings/string_view.h>

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "frontend/output_parsing/output_format.h"

namespace lockstep {

// A tool as a call of it must be.
struct CallableTool {
  std::string name;
  // A JSON schema of its arguments, an object that ParseStrictJson takes;
  // empty: there are none.
  std::string parameters;
};

// The special tokens among a format's marks, by their text: a text never has
// them, so grammars name them by their ids.
using MarkIds = std::map<std::string, uint32_t, std::less<>>;

// Where families of one format differ.
struct CallDialect {
  ToolFormat format = ToolFormat::kNone;
  MarkIds marks = {};
  // Of kDeepSeek: arguments are in a fence, as V3 and R1 write them.
  bool is_fenced = false;
};

// A mark in a grammar's rule.
std::string LarkMark(absl::string_view mark, const MarkIds& ids);

// How calls are written, as rules of Lark, so that the format's parser reads
// them back.
struct CallRules {
  // What calls begin with; empty: they are the whole answer, and begin with
  // `bare_start`.
  std::string lead = {};
  char bare_start = '\0';
  // Defines `calls`, which follow the lead: one or, if several may be made, at
  // least one.
  std::string rules = {};
};

// REQUIRES: there are tools, and the format is neither kNone nor kHarmony.
CallRules MakeCallRules(const CallDialect& dialect,
                        const std::vector<CallableTool>& tools, bool several);

// "%json {…}" of a tool's arguments, which are an object whatever its schema
// says.
std::string LarkArguments(const CallableTool& tool);

}  // namespace lockstep
