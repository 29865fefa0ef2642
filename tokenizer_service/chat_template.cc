#include "tokenizer_service/chat_template.h"

#include <nlohmann/json.hpp>

#include "common/status_macros.h"
#include "third_party/text/text_library.h"

namespace lockstep {

absl::StatusOr<std::unique_ptr<ChatTemplate>> ChatTemplate::Compile(
    absl::string_view source,
    const std::map<std::string, std::string>& variables) {
  const std::string json = nlohmann::json(variables).dump();
  LtTemplate* handle = nullptr;
  RustBytes error;
  LOCKSTEP_RETURN_IF_ERROR(
      ToStatus(lt_template_new(Data(source), source.size(), Data(json),
                               json.size(), &handle, &error),
               error));
  return std::unique_ptr<ChatTemplate>(new ChatTemplate(handle));
}

ChatTemplate::~ChatTemplate() { lt_template_free(handle_); }

absl::StatusOr<std::string> ChatTemplate::Render(
    absl::string_view context_json) const {
  RustBytes text, error;
  LOCKSTEP_RETURN_IF_ERROR(
      ToStatus(lt_render(handle_, Data(context_json), context_json.size(),
                         &text, &error),
               error));
  return text.ToString();
}

}  // namespace lockstep
