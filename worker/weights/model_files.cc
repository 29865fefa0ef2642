#include "worker/weights/model_files.h"

#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "common/gguf_file.h"
#include "common/mapped_file.h"
#include "common/status_macros.h"
#include "common/strict_json.h"
#include "worker/model_spec/gguf_config.h"
#include "worker/model_spec/huggingface_config.h"
#include "worker/model_spec/rope_length.h"
#include "worker/weights/fingerprint.h"
#include "worker/weights/gguf_source.h"
#include "worker/weights/safetensors_folder.h"
#include "worker/weights/tensor_table.h"
#include "worker/weights/text_part.h"

namespace lockstep {
namespace {

absl::StatusOr<nlohmann::json> ReadJson(const std::string& path) {
  LOCKSTEP_ASSIGN_OR_RETURN(const auto file, MappedFile::Open(path));
  const auto bytes = file->bytes();
  return ParseStrictJson(
      absl::string_view(reinterpret_cast<const char*>(bytes.data()),
                        bytes.size()),
      path);
}

absl::Status OpenFolder(const std::string& folder, ModelFiles* model) {
  const std::string config_path = folder + "/config.json";
  LOCKSTEP_ASSIGN_OR_RETURN(const auto config, ReadJson(config_path));
  LOCKSTEP_ASSIGN_OR_RETURN(model->config,
                            ConfigFromHuggingFace(config, config_path));
  const std::string generation_path = folder + "/generation_config.json";
  const auto generation = ReadJson(generation_path);
  if (generation.ok()) {
    LOCKSTEP_RETURN_IF_ERROR(
        MergeGenerationConfig(*generation, generation_path, &model->config));
  } else if (!absl::IsNotFound(generation.status())) {
    return generation.status();
  }
  LOCKSTEP_ASSIGN_OR_RETURN(model->tensors, SafetensorsFolder::Open(folder));
  if (model->config.multimodal) {
    model->tensors = std::make_unique<TextPart>(std::move(model->tensors));
  }
  return absl::OkStatus();
}

absl::Status OpenGguf(const std::string& path, ModelFiles* model) {
  LOCKSTEP_ASSIGN_OR_RETURN(auto file, GgufFile::Open(path));
  LOCKSTEP_ASSIGN_OR_RETURN(model->config, ConfigFromGguf(*file));
  LOCKSTEP_ASSIGN_OR_RETURN(model->tensors,
                            GgufSource::Create(std::move(file)));
  return absl::OkStatus();
}

absl::Status OpenEither(const std::string& path, ModelFiles* model) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (!std::filesystem::exists(status)) {
    return absl::NotFoundError(
        absl::StrCat("there is no model ", path, ": ",
                     error ? error.message() : "not found", "."));
  }
  if (std::filesystem::exists(path + "/config.json", error)) {
    return OpenFolder(path, model);
  }
  if (absl::EndsWith(path, ".gguf")) return OpenGguf(path, model);
  return absl::InvalidArgumentError(absl::StrCat(
      "the model ", path,
      " is neither a folder with a config.json nor a .gguf file."));
}

// The types of the tensors, those of most elements first.
std::vector<std::string> TypesByUse(const std::vector<Tensor>& tensors) {
  std::map<std::string, int64_t> elements;
  for (const Tensor& tensor : tensors) {
    int64_t count = 1;
    for (const int64_t size : tensor.shape) count *= size;
    elements[kernels::DTypeName(tensor.type)] += count;
  }
  std::vector<std::string> types;
  for (const auto& [type, count] : elements) types.push_back(type);
  std::stable_sort(types.begin(), types.end(),
                   [&elements](const std::string& a, const std::string& b) {
                     return elements[a] > elements[b];
                   });
  return types;
}

}  // namespace

absl::StatusOr<ModelFiles> OpenModel(const std::string& path, int max_context) {
  ModelFiles model;
  LOCKSTEP_RETURN_IF_ERROR(OpenEither(path, &model));
  FixRope(max_context, &model.config);
  LOCKSTEP_RETURN_IF_ERROR(CheckTensors(*model.tensors, model.config));
  std::vector<Tensor> used;
  for (const TensorSpec& spec : ExpectedTensors(model.config)) {
    LOCKSTEP_ASSIGN_OR_RETURN(Tensor tensor, model.tensors->Get(spec.name));
    if (spec.cut != nullptr) {
      int& block = model.row_parallel_blocks.*spec.cut;
      block = std::max(block, kernels::BlockValues(tensor.type));
    }
    used.push_back(std::move(tensor));
  }
  model.weight_types = TypesByUse(used);
  LOCKSTEP_ASSIGN_OR_RETURN(model.fingerprint,
                            Fingerprint(model.config, *model.tensors));
  return model;
}

}  // namespace lockstep
