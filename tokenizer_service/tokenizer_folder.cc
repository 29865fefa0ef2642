#include "tokenizer_service/tokenizer_folder.h"

#include <absl/algorithm/container.h>
#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "common/mapped_file.h"
#include "common/status_macros.h"
#include "common/strict_json.h"
#include "tokenizer_service/chat_template.h"
#include "tokenizer_service/hf_tokenizer.h"

namespace lockstep {
namespace {

using Json = nlohmann::json;

// More ids than any model has; a file that says so is mistaken.
constexpr uint64_t kMaxVocabularySize = 1 << 24;

absl::Status InFile(const std::string& path, const absl::Status& status) {
  return absl::Status(status.code(),
                      absl::StrCat(path, ": ", status.message()));
}

bool Exists(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::exists(path, ignored);
}

// A special token is its text or an object with it.
std::optional<std::string> TokenText(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (!value.is_object()) return std::nullopt;
  const auto content = value.find("content");
  if (content == value.end() || !content->is_string()) return std::nullopt;
  return content->get<std::string>();
}

std::map<std::string, std::string> SpecialTokens(const Json& config) {
  std::map<std::string, std::string> tokens;
  for (const auto& [name, value] : config.items()) {
    if (!absl::EndsWith(name, "_token")) continue;
    if (auto text = TokenText(value)) tokens[name] = *std::move(text);
  }
  return tokens;
}

// One template, or several of which one is called "default".
absl::StatusOr<std::optional<std::string>> TemplateOf(const Json& config) {
  const auto value = config.find("chat_template");
  if (value == config.end() || value->is_null()) return std::nullopt;
  if (value->is_string()) return value->get<std::string>();
  if (!value->is_array()) {
    return absl::InvalidArgumentError(
        "chat_template is neither a text nor a list.");
  }
  for (const Json& one : *value) {
    if (!one.is_object()) continue;
    const auto name = one.find("name");
    const auto text = one.find("template");
    if (name == one.end() || *name != "default") continue;
    if (text != one.end() && text->is_string()) return text->get<std::string>();
  }
  return absl::InvalidArgumentError(
      "chat_template is a list without a template named \"default\".");
}

absl::StatusOr<std::vector<uint32_t>> EosTokenIds(const Json& config) {
  std::vector<uint32_t> ids;
  const auto value = config.find("eos_token_id");
  if (value == config.end() || value->is_null()) return ids;
  for (const Json& id : value->is_array() ? *value : Json::array({*value})) {
    if (!id.is_number_unsigned() || id.get<uint64_t>() >= kMaxVocabularySize) {
      return absl::InvalidArgumentError(
          absl::StrCat("eos_token_id is ", value->dump(),
                       "; expected a token id or a list of them."));
    }
    ids.push_back(id.get<uint32_t>());
  }
  return ids;
}

// Models of text and more keep it in "text_config".
absl::StatusOr<uint32_t> VocabularySize(const Json& config) {
  auto value = config.find("vocab_size");
  if (value == config.end()) {
    const auto text_config = config.find("text_config");
    if (text_config == config.end() || !text_config->is_object()) return 0;
    value = text_config->find("vocab_size");
    if (value == text_config->end()) return 0;
  }
  if (!value->is_number_unsigned() ||
      value->get<uint64_t>() > kMaxVocabularySize) {
    return absl::InvalidArgumentError(
        absl::StrCat("vocab_size is ", value->dump(),
                     "; expected a number up to ", kMaxVocabularySize, "."));
  }
  return value->get<uint32_t>();
}

using Notes = std::vector<std::string>;

// The template of a file, which is named where it is none.
absl::StatusOr<std::optional<std::string>> Checked(
    std::optional<std::string> source, const std::string& path) {
  if (!source.has_value()) return source;
  const auto compiled = ChatTemplate::Compile(*source, {});
  if (!compiled.ok()) return InFile(path, compiled.status());
  return source;
}

// That of tokenizer_config.json; chat_template.jinja goes before it.
absl::StatusOr<std::optional<std::string>> ChooseTemplate(
    const std::string& folder, const Json& tokenizer_config, Notes* notes) {
  auto in_config = TemplateOf(tokenizer_config);
  if (!in_config.ok()) {
    return InFile(folder + "/tokenizer_config.json", in_config.status());
  }
  const std::string jinja = folder + "/chat_template.jinja";
  if (!Exists(jinja)) {
    return Checked(*std::move(in_config), folder + "/tokenizer_config.json");
  }
  LOCKSTEP_ASSIGN_OR_RETURN(const auto file, MappedFile::Open(jinja));
  if (in_config->has_value() && **in_config != file->text()) {
    notes->push_back(
        "chat_template.jinja and tokenizer_config.json have different chat "
        "templates: that of chat_template.jinja counts.");
  }
  return Checked(std::string(file->text()), jinja);
}

absl::StatusOr<HfTokenizer::Settings> ReadSettings(
    const std::string& folder, const Json& model_config,
    const std::optional<std::string>& chat_template, Notes* notes) {
  HfTokenizer::Settings settings;
  LOCKSTEP_ASSIGN_OR_RETURN(
      const Json tokenizer_config,
      ReadStrictJsonObject(folder + "/tokenizer_config.json"));
  settings.special_tokens = SpecialTokens(tokenizer_config);
  settings.chat_template = chat_template;
  if (!chat_template.has_value()) {
    LOCKSTEP_ASSIGN_OR_RETURN(settings.chat_template,
                              ChooseTemplate(folder, tokenizer_config, notes));
  }

  const std::string model_path = folder + "/config.json";
  const auto size = VocabularySize(model_config);
  if (!size.ok()) return InFile(model_path, size.status());
  settings.least_vocabulary_size = *size;

  // Either's, as the worker does it.
  const std::string generation_path = folder + "/generation_config.json";
  LOCKSTEP_ASSIGN_OR_RETURN(const Json generation,
                            ReadStrictJsonObject(generation_path));
  for (const auto& [path, config] : {std::pair{&generation_path, &generation},
                                     std::pair{&model_path, &model_config}}) {
    const auto eos = EosTokenIds(*config);
    if (!eos.ok()) return InFile(*path, eos.status());
    settings.more_eos_token_ids.insert(settings.more_eos_token_ids.end(),
                                       eos->begin(), eos->end());
  }
  return settings;
}

// What the tokenizer says of ids, against what the model's config does.
void CompareIds(const TokenizerInfo& info,
                const HfTokenizer::Settings& settings, const Json& model_config,
                Notes* notes) {
  const auto& ends = settings.more_eos_token_ids;
  const auto end = settings.special_tokens.find("eos_token");
  if (end != settings.special_tokens.end() && !ends.empty() &&
      !absl::c_linear_search(ends, info.eos_token_ids.front())) {
    notes->push_back(absl::StrCat(
        "eos_token is ", end->second, " (", info.eos_token_ids.front(),
        ") in tokenizer_config.json, and eos_token_id of the model is ",
        absl::StrJoin(ends, ", "), ": only the latter end an answer."));
  }
  const auto begin = model_config.find("bos_token_id");
  if (begin != model_config.end() && begin->is_number_unsigned() &&
      info.bos_token_id.has_value() && *begin != *info.bos_token_id) {
    notes->push_back(absl::StrCat(
        "bos_token is ", *info.bos_token_id,
        " in tokenizer_config.json, and bos_token_id is ", begin->dump(),
        " in config.json: the tokenizer's counts."));
  }
  const uint32_t rows = settings.least_vocabulary_size;
  if (rows != 0 && info.vocabulary_size > rows) {
    notes->push_back(absl::StrCat(
        "tokenizer.json has ", info.vocabulary_size, " ids, and vocab_size is ",
        rows, " in config.json: the model knows nothing of the last ones."));
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<Tokenizer>> OpenTokenizerFolder(
    const std::string& folder, const std::optional<std::string>& chat_template,
    Notes* notes) {
  Notes ignored;
  if (notes == nullptr) notes = &ignored;
  const std::string path = folder + "/tokenizer.json";
  LOCKSTEP_ASSIGN_OR_RETURN(const auto file, MappedFile::Open(path));
  LOCKSTEP_ASSIGN_OR_RETURN(const Json model_config,
                            ReadStrictJsonObject(folder + "/config.json"));
  LOCKSTEP_ASSIGN_OR_RETURN(
      const HfTokenizer::Settings settings,
      ReadSettings(folder, model_config, chat_template, notes));
  auto tokenizer = HfTokenizer::Create(file->text(), settings);
  if (!tokenizer.ok()) return InFile(path, tokenizer.status());
  CompareIds((*tokenizer)->info(), settings, model_config, notes);
  return *std::move(tokenizer);
}

}  // namespace lockstep
