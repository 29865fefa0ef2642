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
#include "common/status_macros.h"
#include "common/strict_json.h"
#include "worker/checkpoint/fused_experts.h"
#include "worker/checkpoint/gguf_parts.h"
#include "worker/checkpoint/gguf_source.h"
#include "worker/checkpoint/quantized_checkpoint.h"
#include "worker/checkpoint/random_source.h"
#include "worker/checkpoint/rounded_source.h"
#include "worker/checkpoint/safetensors_folder.h"
#include "worker/checkpoint/tensor_part.h"
#include "worker/checkpoint/text_part.h"
#include "worker/model_spec/gguf_config.h"
#include "worker/model_spec/huggingface_config.h"
#include "worker/model_spec/quantization_config.h"
#include "worker/model_spec/rope_length.h"
#include "worker/weights/embedding_files.h"
#include "worker/weights/fingerprint.h"
#include "worker/weights/tensor_table.h"

namespace lockstep {
namespace {

// Opens a model into `model` and collects what decides its weights besides the
// stored tensors.
class Opener {
 public:
  Opener(const std::string& path, const WeightOptions& options,
         ModelFiles* model)
      : path_(path), options_(options), model_(*model) {}

  absl::Status Open() {
    LOCKSTEP_RETURN_IF_ERROR(OpenEither());
    return options_.rounded_to.has_value() ? Round(*options_.rounded_to)
                                           : absl::OkStatus();
  }

  const std::string& format() const { return format_; }

 private:
  absl::Status OpenEither() {
    std::error_code error;
    const auto status = std::filesystem::status(path_, error);
    if (!std::filesystem::exists(status)) {
      return absl::NotFoundError(
          absl::StrCat("there is no model ", path_, ": ",
                       error ? error.message() : "not found", "."));
    }
    if (std::filesystem::exists(path_ + "/config.json", error)) {
      return OpenFolder();
    }
    if (absl::EndsWith(path_, ".gguf")) return OpenGguf();
    return absl::InvalidArgumentError(absl::StrCat(
        "the model ", path_,
        " is neither a folder with a config.json nor a .gguf file."));
  }

  absl::Status OpenFolder() {
    const std::string config_path = path_ + "/config.json";
    LOCKSTEP_ASSIGN_OR_RETURN(const auto config, ReadStrictJson(config_path));
    LOCKSTEP_ASSIGN_OR_RETURN(model_.config,
                              ConfigFromHuggingFace(config, config_path));
    const std::string generation_path = path_ + "/generation_config.json";
    LOCKSTEP_ASSIGN_OR_RETURN(const auto generation,
                              ReadStrictJsonObject(generation_path));
    LOCKSTEP_RETURN_IF_ERROR(
        MergeGenerationConfig(generation, generation_path, &model_.config));
    model_.embedding =
        ReadEmbeddingFiles(path_, config, model_.config.hidden_size);
    LOCKSTEP_ASSIGN_OR_RETURN(const auto quantization,
                              ReadQuantizationConfig(config, config_path));
    if (options_.random) return MakeRandom(quantization.has_value());
    LOCKSTEP_ASSIGN_OR_RETURN(model_.tensors, SafetensorsFolder::Open(path_));
    LOCKSTEP_ASSIGN_OR_RETURN(const bool is_base, TakeTextPart());
    if (HasFusedExperts(*model_.tensors)) {
      LOCKSTEP_ASSIGN_OR_RETURN(
          model_.tensors,
          FusedExperts::Create(std::move(model_.tensors), model_.config));
    }
    if (quantization.has_value()) {
      format_ = quantization->text;
      LOCKSTEP_ASSIGN_OR_RETURN(
          model_.tensors, QuantizedCheckpoint::Create(std::move(model_.tensors),
                                                      *quantization));
    }
    return is_base ? FindHead() : absl::OkStatus();
  }

  // Whether the model was saved without its head, or might have been.
  absl::StatusOr<bool> TakeTextPart() {
    if (model_.config.multimodal) {
      LOCKSTEP_ASSIGN_OR_RETURN(
          model_.tensors, TextPart::OfVisionModel(std::move(model_.tensors)));
      return false;
    }
    LOCKSTEP_ASSIGN_OR_RETURN(const bool is_base, IsBaseModel(*model_.tensors));
    if (is_base) {
      LOCKSTEP_ASSIGN_OR_RETURN(model_.tensors,
                                TextPart::OfBase(std::move(model_.tensors)));
    }
    return is_base;
  }

  absl::Status FindHead() {
    ModelConfig& config = model_.config;
    config.has_head =
        config.tied_embeddings || model_.tensors->Get(kHeadName).ok();
    if (config.has_head || model_.embedding.ok()) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat(path_, " has neither an output head, ", kHeadName,
                     ", nor what embeddings are made with: ",
                     model_.embedding.status().message()));
  }

  absl::Status OpenGguf() {
    if (options_.random) return NoRandom("a GGUF file, which has its weights");
    LOCKSTEP_ASSIGN_OR_RETURN(auto file, GgufFile::Open(path_));
    LOCKSTEP_ASSIGN_OR_RETURN(auto others, OpenOtherParts(*file));
    LOCKSTEP_ASSIGN_OR_RETURN(model_.config, ConfigFromGguf(*file));
    model_.embedding = EmbeddingConfigOf(*file);
    LOCKSTEP_ASSIGN_OR_RETURN(
        model_.tensors, GgufSource::Create(std::move(file), std::move(others)));
    return absl::OkStatus();
  }

  absl::Status MakeRandom(bool is_quantized) {
    if (is_quantized) return NoRandom("said to be quantized in config.json");
    format_ = "random";
    std::map<std::string, std::vector<int64_t>> shapes;
    for (TensorSpec& spec : ExpectedTensors(model_.config)) {
      shapes[spec.name] = std::move(spec.shape);
    }
    model_.tensors = std::make_unique<RandomSource>(path_, shapes);
    return absl::OkStatus();
  }

  absl::Status NoRandom(absl::string_view why) const {
    return absl::InvalidArgumentError(absl::StrCat(
        "--load_format is dummy, but the model ", path_, " is ", why, "."));
  }

  // All matrices but the embedding and routers. A head that is the embedding
  // becomes one of its own.
  absl::Status Round(kernels::DType type) {
    LOCKSTEP_RETURN_IF_ERROR(CheckTensors(*model_.tensors, model_.config));
    absl::StrAppend(&format_, ", rounded to ", kernels::DTypeName(type));
    std::map<std::string, std::string> names;
    for (const TensorSpec& spec : ExpectedTensors(model_.config)) {
      const bool is_rounded =
          spec.shape.size() == 2 && !spec.routes && spec.name != kEmbeddingName;
      if (is_rounded) names[spec.name] = spec.name;
    }
    if (model_.config.tied_embeddings) {
      names[kHeadName] = kEmbeddingName;
      model_.config.tied_embeddings = false;
    }
    LOCKSTEP_ASSIGN_OR_RETURN(
        model_.tensors,
        RoundedSource::Create(std::move(model_.tensors), type, names));
    return absl::OkStatus();
  }

  const std::string& path_;
  const WeightOptions& options_;
  ModelFiles& model_;
  std::string format_;
};

// Of the tensors that are used: their types, those of most elements first, and
// the blocks of those that are cut inside a row.
absl::Status DescribeTensors(ModelFiles* model) {
  std::map<std::string, int64_t> elements;
  const auto add = [&](const TensorSpec& spec) -> absl::Status {
    LOCKSTEP_ASSIGN_OR_RETURN(const Tensor tensor,
                              model->tensors->Get(spec.name));
    if (spec.cut != nullptr) {
      int& block = model->row_parallel_blocks.*spec.cut;
      block = std::max(block, kernels::BlockValues(tensor.type));
    }
    int64_t count = 1;
    for (const int64_t size : tensor.shape) count *= size;
    elements[FormatName(tensor)] += count;
    return absl::OkStatus();
  };
  LOCKSTEP_RETURN_IF_ERROR(VisitTensors(model->config, add));
  std::vector<std::string>& types = model->weight_types;
  for (const auto& [type, count] : elements) types.push_back(type);
  std::stable_sort(types.begin(), types.end(),
                   [&elements](const std::string& a, const std::string& b) {
                     return elements[a] > elements[b];
                   });
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ModelFiles> OpenModel(const std::string& path, int max_context,
                                     const WeightOptions& options) {
  ModelFiles model;
  Opener opener(path, options, &model);
  LOCKSTEP_RETURN_IF_ERROR(opener.Open());
  FixRope(max_context, &model.config);
  LOCKSTEP_RETURN_IF_ERROR(CheckTensors(*model.tensors, model.config));
  LOCKSTEP_RETURN_IF_ERROR(DescribeTensors(&model));
  LOCKSTEP_ASSIGN_OR_RETURN(
      model.fingerprint,
      Fingerprint(model.config, opener.format(), model.tensors->stored()));
  if (options.verified) {
    LOCKSTEP_ASSIGN_OR_RETURN(model.content,
                              DigestContent(model.tensors->stored()));
  }
  model.tensors->DropPages();
  return model;
}

}  // namespace lockstep
