#include "worker/model_spec/embedding_config.h"

#include <absl/algorithm/container.h>
#include <absl/strings/ascii.h>
#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/strip.h>

#include "common/status_macros.h"
#include "worker/model_spec/json_fields.h"

namespace lockstep {
namespace {

using nlohmann::json;

constexpr char kModePrefix[] = "pooling_mode_";

// "sentence_transformers.models.Pooling" of older files, and
// "sentence_transformers.sentence_transformer.modules.pooling.Pooling".
std::string LastWord(const std::string& type) {
  return type.substr(type.rfind('.') + 1);
}

// It is joined to the model's folder, so it leads nowhere else.
bool IsPlainName(const std::string& name) {
  const auto is_plain = [](char c) {
    return absl::ascii_isalnum(c) || c == '_' || c == '-' || c == '.';
  };
  return !name.empty() && name != "." && name != ".." &&
         absl::c_all_of(name, is_plain);
}

absl::Status Unsupported(const std::string& path, absl::string_view what) {
  return absl::UnimplementedError(absl::StrCat(path, " ", what));
}

absl::Status SetPooling(const std::string& mode, const std::string& path,
                        EmbeddingConfig* embedding) {
  if (mode == "lasttoken") {
    embedding->pooling = EmbeddingConfig::Pooling::kLastToken;
  } else if (mode == "mean" || mode == "mean_tokens") {
    embedding->pooling = EmbeddingConfig::Pooling::kMean;
  } else {
    return Unsupported(path, absl::StrCat("has the pooling mode ", mode,
                                          "; supported are lasttoken and "
                                          "mean."));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ReadMatryoshka(const json& config, const std::string& path,
                            int hidden_size, EmbeddingConfig* embedding) {
  const JsonFields fields(config, path);
  LOCKSTEP_ASSIGN_OR_RETURN(embedding->any_dimensions,
                            fields.BoolOr("is_matryoshka", false));
  const json* const list = fields.Find("matryoshka_dimensions");
  if (list == nullptr) return absl::OkStatus();
  if (!list->is_array()) {
    return fields.Unexpected("matryoshka_dimensions", "a list of integers");
  }
  embedding->any_dimensions = false;
  for (const json& element : *list) {
    const bool is_good =
        element.is_number_integer() && element >= 1 && element <= hidden_size;
    if (!is_good) {
      return fields.Unexpected(
          "matryoshka_dimensions",
          absl::StrCat("a list of integers from 1 to ", hidden_size));
    }
    embedding->fewer_dimensions.push_back(element.get<int>());
  }
  return absl::OkStatus();
}

absl::StatusOr<std::optional<std::string>> ReadModules(
    const json& modules, const std::string& path, EmbeddingConfig* embedding) {
  if (!modules.is_array()) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, " must be a list of modules."));
  }
  std::optional<std::string> pooling_folder;
  embedding->normalize = false;
  for (const json& module : modules) {
    const JsonFields fields(module, path);
    LOCKSTEP_ASSIGN_OR_RETURN(const std::string type,
                              fields.StringOr("type", ""));
    const std::string kind = LastWord(type);
    if (kind == "Normalize") {
      embedding->normalize = true;
    } else if (kind == "Pooling") {
      LOCKSTEP_ASSIGN_OR_RETURN(pooling_folder, fields.StringOr("path", ""));
      if (!IsPlainName(*pooling_folder)) {
        return fields.Unexpected("path", "the name of a folder");
      }
    } else if (kind != "Transformer") {
      return Unsupported(path, absl::StrCat("has a module of type \"", type,
                                            "\"; supported are Transformer, "
                                            "Pooling and Normalize."));
    }
  }
  return pooling_folder;
}

absl::Status ReadPooling(const json& pooling, const std::string& path,
                         EmbeddingConfig* embedding) {
  const JsonFields fields(pooling, path);
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string mode,
                            fields.StringOr("pooling_mode", ""));
  if (!mode.empty()) return SetPooling(mode, path, embedding);
  bool is_set = false;
  for (const auto& [name, value] : pooling.items()) {
    absl::string_view of_mode = name;
    if (!absl::ConsumePrefix(&of_mode, kModePrefix) || value != true) continue;
    if (is_set) return Unsupported(path, "has more than one pooling mode.");
    is_set = true;
    LOCKSTEP_RETURN_IF_ERROR(SetPooling(std::string(of_mode), path, embedding));
  }
  return is_set ? absl::OkStatus() : Unsupported(path, "has no pooling mode.");
}

}  // namespace lockstep
