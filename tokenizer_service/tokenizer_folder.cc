#include "tokenizer_service/tokenizer_folder.h"

#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "common/mapped_file.h"
#include "common/status_macros.h"
#include "common/strict_json.h"
#include "tokenizer_service/hf_tokenizer.h"

namespace lockstep {
namespace {

using Json = nlohmann::json;

// More ids than any model has; a file that says so is mistaken.
constexpr uint64_t kMaxVocabularySize = 1 << 24;

absl::string_view TextOf(const MappedFile& file) {
  return absl::string_view(reinterpret_cast<const char*>(file.bytes().data()),
                           file.bytes().size());
}

absl::Status InFile(const std::string& path, const absl::Status& status) {
  return absl::Status(status.code(),
                      absl::StrCat(path, ": ", status.message()));
}

bool Exists(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::exists(path, ignored);
}

// An empty object where there is no such file.
absl::StatusOr<Json> ReadObject(const std::string& path) {
  if (!Exists(path)) return Json::object();
  LOCKSTEP_ASSIGN_OR_RETURN(const auto file, MappedFile::Open(path));
  LOCKSTEP_ASSIGN_OR_RETURN(Json object, ParseStrictJson(TextOf(*file), path));
  if (!object.is_object()) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, " holds no JSON object."));
  }
  return object;
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

absl::StatusOr<HfTokenizer::Settings> ReadSettings(const std::string& folder) {
  const std::string tokenizer_config = folder + "/tokenizer_config.json";
  const std::string jinja = folder + "/chat_template.jinja";
  const std::string generation_config = folder + "/generation_config.json";
  const std::string model_config = folder + "/config.json";
  HfTokenizer::Settings settings;

  LOCKSTEP_ASSIGN_OR_RETURN(Json config, ReadObject(tokenizer_config));
  settings.special_tokens = SpecialTokens(config);
  auto chat_template = TemplateOf(config);
  if (!chat_template.ok()) {
    return InFile(tokenizer_config, chat_template.status());
  }
  settings.chat_template = *std::move(chat_template);
  if (Exists(jinja)) {
    LOCKSTEP_ASSIGN_OR_RETURN(const auto file, MappedFile::Open(jinja));
    settings.chat_template = std::string(TextOf(*file));
  }

  LOCKSTEP_ASSIGN_OR_RETURN(config, ReadObject(model_config));
  const auto size = VocabularySize(config);
  if (!size.ok()) return InFile(model_config, size.status());
  settings.least_vocabulary_size = *size;

  const bool generation = Exists(generation_config);
  if (generation) {
    LOCKSTEP_ASSIGN_OR_RETURN(config, ReadObject(generation_config));
  }
  auto eos = EosTokenIds(config);
  if (!eos.ok()) {
    return InFile(generation ? generation_config : model_config, eos.status());
  }
  settings.more_eos_token_ids = *std::move(eos);
  return settings;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Tokenizer>> OpenTokenizerFolder(
    const std::string& folder) {
  const std::string path = folder + "/tokenizer.json";
  LOCKSTEP_ASSIGN_OR_RETURN(const auto file, MappedFile::Open(path));
  LOCKSTEP_ASSIGN_OR_RETURN(const auto settings, ReadSettings(folder));
  auto tokenizer = HfTokenizer::Create(TextOf(*file), settings);
  if (!tokenizer.ok()) return InFile(path, tokenizer.status());
  return *std::move(tokenizer);
}

}  // namespace lockstep
