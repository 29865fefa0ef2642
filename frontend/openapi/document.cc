#include "frontend/openapi/document.h"

#include <absl/strings/ascii.h>

namespace lockstep {
namespace {

constexpr char kText[] =
#include "frontend/openapi/document_text.inc"
    ;

}  // namespace

absl::string_view OpenApiDocument() {
  return absl::StripAsciiWhitespace(kText);
}

}  // namespace lockstep
