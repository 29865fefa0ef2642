#include "tokenizer_service/text_check.h"

#include <absl/strings/str_cat.h>

#include "common/utf8.h"
#include "tokenizer_service/tokenizer.h"

namespace lockstep {

absl::Status CheckText(absl::string_view field, absl::string_view text) {
  if (text.size() > kMaxTextBytes) {
    return absl::InvalidArgumentError(absl::StrCat(field, " is ", text.size(),
                                                   " bytes, more than the ",
                                                   kMaxTextBytes, " allowed."));
  }
  if (const auto offset = FindInvalidUtf8(text)) {
    return absl::InvalidArgumentError(
        absl::StrCat(field, " is no valid UTF-8: its byte ", *offset,
                     " starts no character."));
  }
  return absl::OkStatus();
}

}  // namespace lockstep
