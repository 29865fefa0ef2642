#include "frontend/output_parsing/tool_call_format.h"

#include <utility>

namespace lockstep {

ToolCallFormat::Reading ToolCallFormat::Reading::Of(Scan scan,
                                                    CallHeader call) {
  switch (scan) {
    case Scan::kWhole:
      return {Kind::kCall, std::move(call)};
    case Scan::kMore:
      return {Kind::kMore};
    case Scan::kBroken:
      break;
  }
  return {Kind::kNone};
}

ToolCallFormat::Reading ToolCallFormat::Reading::AfterCall(Reading next,
                                                           size_t size) {
  if (next.kind == Kind::kMore) return MoreAfter(size);
  if (next.kind == Kind::kNone) return EndAt(size);
  return next;
}

}  // namespace lockstep
