#include "worker/model_spec/model_defaults.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>

#include "common/gguf_file.h"
#include "common/status_macros.h"
#include "common/strict_json.h"

namespace lockstep {
namespace {

using nlohmann::json;

// The small files of a folder; empty objects where they are not there.
struct Files {
  json config;  // of the text model
  json generation;
  json tokenizer;
};

absl::StatusOr<Files> ReadFiles(const std::string& folder) {
  Files files;
  LOCKSTEP_ASSIGN_OR_RETURN(files.config,
                            ReadStrictJsonObject(folder + "/config.json"));
  LOCKSTEP_ASSIGN_OR_RETURN(
      files.generation,
      ReadStrictJsonObject(folder + "/generation_config.json"));
  LOCKSTEP_ASSIGN_OR_RETURN(
      files.tokenizer, ReadStrictJsonObject(folder + "/tokenizer_config.json"));
  const auto text = files.config.find("text_config");
  if (text != files.config.end() && text->is_object()) {
    files.config = json(*text);
  }
  return files;
}

// 0 where it is not there, or no number that tokens can be counted by.
int64_t CountIn(const json& object, const char* field) {
  constexpr double kMost = 1e15;  // above it are those that say "no limit"
  const auto value = object.find(field);
  if (value == object.end() || !value->is_number()) return 0;
  const double count = value->get<double>();
  return count >= 1 && count < kMost ? static_cast<int64_t>(count) : 0;
}

// One id or several.
std::vector<int64_t> IdsIn(const json& object, const char* field) {
  std::vector<int64_t> ids;
  const auto value = object.find(field);
  if (value == object.end()) return ids;
  for (const json& id : value->is_array() ? *value : json::array({*value})) {
    if (id.is_number_integer()) ids.push_back(id.get<int64_t>());
  }
  std::sort(ids.begin(), ids.end());
  return ids;
}

void CompareIds(const Files& files, std::vector<std::string>* notes) {
  const auto ends = IdsIn(files.config, "eos_token_id");
  const auto more_ends = IdsIn(files.generation, "eos_token_id");
  if (!more_ends.empty() && !std::includes(more_ends.begin(), more_ends.end(),
                                           ends.begin(), ends.end())) {
    notes->push_back(
        absl::StrCat("eos_token_id is ", absl::StrJoin(ends, ", "),
                     " in config.json and ", absl::StrJoin(more_ends, ", "),
                     " in generation_config.json: all of them end an answer."));
  }
  const auto begins = IdsIn(files.config, "bos_token_id");
  const auto other_begins = IdsIn(files.generation, "bos_token_id");
  if (!begins.empty() && !other_begins.empty() && begins != other_begins) {
    notes->push_back(
        absl::StrCat("bos_token_id is ", absl::StrJoin(begins, ", "),
                     " in config.json and ", absl::StrJoin(other_begins, ", "),
                     " in generation_config.json: the tokenizer's counts."));
  }
}

void CompareLengths(const Files& files, const ModelConfig& config,
                    ModelDefaults* defaults) {
  const int64_t positions = CountIn(files.config, "max_position_embeddings");
  if (config.rope.scaling == RopeConfig::Scaling::kYarn && positions != 0 &&
      positions != config.max_context) {
    defaults->notes.push_back(absl::StrCat(
        "max_position_embeddings is ", positions, ", and yarn stretches ",
        config.rope.original_max_position, " positions by ", config.rope.factor,
        ": the model takes ", config.max_context, " tokens."));
  }
  const int64_t wanted = CountIn(files.tokenizer, "model_max_length");
  if (wanted == 0 || wanted >= config.max_context) return;
  defaults->context = static_cast<int>(wanted);
  defaults->notes.push_back(absl::StrCat(
      "model_max_length is ", wanted, " in tokenizer_config.json, and the ",
      "model takes ", config.max_context, " tokens: the context is ", wanted,
      " unless --max_model_len says more."));
}

void CompareHeads(const ModelConfig& config, bool has_head,
                  std::vector<std::string>* notes) {
  if (!config.tied_embeddings || !has_head) return;
  notes->push_back(
      "tie_word_embeddings is true in config.json, and there is a tensor "
      "lm_head.weight: the embedding is the head.");
}

void NoteGreedy(const Files& files, const SamplingDefaults& sampling,
                std::vector<std::string>* notes) {
  const auto value = files.generation.find("do_sample");
  if (value == files.generation.end() || *value != json(false)) return;
  if (sampling.temperature == 0.f) return;
  notes->push_back(
      "do_sample is false in generation_config.json, which does not count: a "
      "request for the most probable tokens has a temperature of 0.");
}

}  // namespace

absl::StatusOr<ModelDefaults> ReadModelDefaults(const std::string& path,
                                                const ModelConfig& config,
                                                bool has_head) {
  ModelDefaults defaults;
  defaults.context = config.max_context;
  std::error_code ignored;
  if (!std::filesystem::is_directory(path, ignored)) {
    LOCKSTEP_ASSIGN_OR_RETURN(const auto file, GgufFile::Open(path));
    LOCKSTEP_ASSIGN_OR_RETURN(defaults.sampling, SamplingFromGguf(*file));
    return defaults;
  }
  LOCKSTEP_ASSIGN_OR_RETURN(const Files files, ReadFiles(path));
  LOCKSTEP_ASSIGN_OR_RETURN(
      defaults.sampling,
      SamplingFromGenerationConfig(files.generation,
                                   path + "/generation_config.json"));
  CompareIds(files, &defaults.notes);
  CompareLengths(files, config, &defaults);
  CompareHeads(config, has_head, &defaults.notes);
  NoteGreedy(files, defaults.sampling, &defaults.notes);
  return defaults;
}

}  // namespace lockstep
