#include "tokenizer_service/start_tokenizer.h"

#include <absl/status/status.h>
#include <absl/strings/str_cat.h>
#include <glog/logging.h>

#include <optional>
#include <utility>
#include <vector>

#include "common/mapped_file.h"
#include "common/status_macros.h"
#include "hub/fetch_model.h"
#include "hub/hub_settings.h"
#include "tokenizer_service/chat_template.h"
#include "tokenizer_service/tokenizer_factory.h"

namespace lockstep {
namespace {

// Of a file; nothing where `path` is empty.
absl::StatusOr<std::optional<std::string>> ReadChatTemplate(
    const std::string& path) {
  if (path.empty()) return std::optional<std::string>();
  const auto in_flag = [&path](const absl::Status& status) {
    return absl::Status(status.code(), absl::StrCat("--chat_template is ", path,
                                                    ": ", status.message()));
  };
  const auto file = MappedFile::Open(path);
  if (!file.ok()) return in_flag(file.status());
  std::string source((*file)->text());
  const auto compiled = ChatTemplate::Compile(source, {});
  if (!compiled.ok()) return in_flag(compiled.status());
  return std::optional<std::string>(std::move(source));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Tokenizer>> StartTokenizer(
    const std::string& model, const std::string& chat_template_file,
    HealthBoard* health) {
  LOCKSTEP_ASSIGN_OR_RETURN(const auto chat_template,
                            ReadChatTemplate(chat_template_file));
  const auto tell = [health](const std::string& progress) {
    health->Enter(Phase::kLoading, progress);
  };
  LOCKSTEP_ASSIGN_OR_RETURN(
      const std::string path,
      FetchModel(model, HubSettingsFromEnvironment(),
                 {.part = ModelPart::kText, .tell = tell}));
  health->Enter(Phase::kLoading, "the tokenizer of " + model);
  std::vector<std::string> notes;
  LOCKSTEP_ASSIGN_OR_RETURN(auto tokenizer,
                            OpenTokenizer(path, chat_template, &notes));
  for (const std::string& note : notes) LOG(WARNING) << model << ": " << note;
  return tokenizer;
}

}  // namespace lockstep
