#include "tests/goldens/prompt_ids.h"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <vector>

#include "common/status_macros.h"

namespace lockstep::goldens {

absl::Status CheckPromptIds(const GoldenPrompt& prompt,
                            const Tokenizer& tokenizer) {
  if (prompt.messages.has_value()) {
    LOCKSTEP_ASSIGN_OR_RETURN(
        const std::string rendered,
        tokenizer.RenderChat(absl::StrCat("{\"messages\": ", *prompt.messages,
                                          ", \"add_generation_prompt\": "
                                          "true}")));
    if (rendered != prompt.text) {
      return absl::DataLossError(
          absl::StrCat(prompt.name, " renders to another text: ", rendered));
    }
  }
  if (!prompt.text.has_value()) return absl::OkStatus();
  // The template writes what special tokens there are.
  LOCKSTEP_ASSIGN_OR_RETURN(
      const std::vector<uint32_t> ids,
      tokenizer.Encode(*prompt.text, /*add_special_tokens=*/false));
  const auto [found, expected] = std::mismatch(
      ids.begin(), ids.end(), prompt.ids.begin(), prompt.ids.end());
  if (found == ids.end() && expected == prompt.ids.end()) {
    return absl::OkStatus();
  }
  return absl::DataLossError(absl::StrCat(
      prompt.name, " encodes to ", ids.size(), " ids, expected ",
      prompt.ids.size(), "; they part at index ", found - ids.begin()));
}

}  // namespace lockstep::goldens
