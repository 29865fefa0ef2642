#include "worker/model_spec/quantization_config.h"

#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>

#include <algorithm>
#include <initializer_list>

#include "common/status_macros.h"
#include "worker/model_spec/config_limits.h"
#include "worker/model_spec/json_fields.h"

namespace lockstep {
namespace {

using nlohmann::json;
using Method = QuantizationConfig::Method;
using Names = std::initializer_list<absl::string_view>;

// What only says how a checkpoint was made, or how others run it.
constexpr absl::string_view kOfNoConsequence[] = {
    "_name_or_path",
    "backend",
    "batch_size",
    "block_name_to_quantize",
    "cache_block_outputs",
    "damp_auto_increment",
    "damp_percent",
    "dataset",
    "disable_exllama",
    "do_fuse",
    "exllama_config",
    "fuse_max_seq_len",
    "global_compression_ratio",
    "max_input_length",
    "meta",
    "model_file_base_name",
    "model_name_or_path",
    "model_seqlen",
    "module_name_preceding_first_block",
    "modules_in_block_to_quantize",
    "modules_to_fuse",
    "observer",
    "observer_kwargs",
    "pad_token_id",
    "quant_method",
    "quantizer",
    "scale_dtype",
    "static_groups",
    "tokenizer",
    "true_sequential",
    "use_cuda_fp16",
    "use_exllama",
    "version",
    "zp_dtype"};

// Refuses each field that is in neither list; null ones are absent.
absl::Status RefuseOthers(const json& object, const JsonFields& fields,
                          const Names& known) {
  for (const auto& [name, value] : object.items()) {
    const absl::string_view field = name;
    if (value.is_null() ||
        std::find(known.begin(), known.end(), field) != known.end() ||
        std::find(std::begin(kOfNoConsequence), std::end(kOfNoConsequence),
                  field) != std::end(kOfNoConsequence)) {
      continue;
    }
    return fields.Unsupported(name, "only configs without it are");
  }
  return absl::OkStatus();
}

// A string that has to be one of a few; the first where it is absent.
absl::StatusOr<std::string> OneOf(const JsonFields& fields,
                                  absl::string_view name,
                                  const Names& supported) {
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string value,
                            fields.StringOr(name, *supported.begin()));
  if (std::find(supported.begin(), supported.end(), value) != supported.end()) {
    return value;
  }
  return fields.Unsupported(
      name, absl::StrCat("supported: ", absl::StrJoin(supported, ", ")));
}

absl::Status RequireBool(const JsonFields& fields, absl::string_view name,
                         bool required) {
  LOCKSTEP_ASSIGN_OR_RETURN(const bool value, fields.BoolOr(name, required));
  if (value == required) return absl::OkStatus();
  return fields.Unsupported(
      name, absl::StrCat("only ", required ? "true" : "false", " is"));
}

// Of columns that share a scale; 0 for all (-1 in files).
absl::StatusOr<int64_t> ReadGroup(const JsonFields& fields,
                                  absl::string_view name) {
  LOCKSTEP_ASSIGN_OR_RETURN(const int group,
                            fields.IntOr(name, -1, kMaxIntermediateSize, -1));
  if (group == 0) return fields.Unexpected(name, "-1 or at least 1");
  return std::max(group, 0);
}

absl::StatusOr<int> ReadBits(const JsonFields& fields, absl::string_view name,
                             std::initializer_list<int> supported) {
  LOCKSTEP_ASSIGN_OR_RETURN(const int bits, fields.Int(name, 1, 64));
  if (std::find(supported.begin(), supported.end(), bits) != supported.end()) {
    return bits;
  }
  return fields.Unsupported(
      name, absl::StrCat("supported: ", absl::StrJoin(supported, ", ")));
}

absl::Status AddNames(const JsonFields& fields, absl::string_view name,
                      std::vector<std::string>* names) {
  const json* list = fields.Find(name);
  if (list == nullptr) return absl::OkStatus();
  const bool is_list_of_names =
      list->is_array() &&
      std::all_of(list->begin(), list->end(),
                  [](const json& entry) { return entry.is_string(); });
  if (!is_list_of_names) return fields.Unexpected(name, "a list of names");
  for (const json& entry : *list) names->push_back(entry.get<std::string>());
  return absl::OkStatus();
}

// Rows and columns of a block that shares a scale.
absl::Status ReadBlock(const JsonFields& fields, absl::string_view name,
                       WeightScheme* scheme) {
  const json* block = fields.Find(name);
  if (block == nullptr) return absl::OkStatus();
  const auto is_size = [](const json& size) {
    return size.is_number_integer() && size > 0 &&
           size <= kMaxIntermediateSize;
  };
  if (!block->is_array() || block->size() != 2 || !is_size((*block)[0]) ||
      !is_size((*block)[1])) {
    return fields.Unexpected(name, "a list of two sizes of at least 1");
  }
  scheme->group_rows = (*block)[0].get<int64_t>();
  scheme->group_cols = (*block)[1].get<int64_t>();
  return absl::OkStatus();
}

absl::Status ReadFp8(const json& object, const JsonFields& fields,
                     QuantizationConfig* config) {
  LOCKSTEP_RETURN_IF_ERROR(
      RefuseOthers(object, fields,
                   {"fmt", "activation_scheme", "weight_block_size",
                    "scale_fmt", "modules_to_not_convert", "ignored_layers"}));
  LOCKSTEP_RETURN_IF_ERROR(OneOf(fields, "fmt", {"e4m3"}).status());
  // Of activations, which are not rounded to 8 bits here.
  LOCKSTEP_RETURN_IF_ERROR(
      OneOf(fields, "activation_scheme", {"dynamic", "static"}).status());
  LOCKSTEP_RETURN_IF_ERROR(
      OneOf(fields, "scale_fmt", {"ue8m0", "float"}).status());
  WeightScheme scheme = {.is_float = true};
  LOCKSTEP_RETURN_IF_ERROR(ReadBlock(fields, "weight_block_size", &scheme));
  config->schemes.push_back(scheme);
  LOCKSTEP_RETURN_IF_ERROR(
      AddNames(fields, "modules_to_not_convert", &config->plain_modules));
  return AddNames(fields, "ignored_layers", &config->plain_modules);
}

// GPTQModel's overrides, by a pattern of modules' names: only those that leave
// modules out, which is what their tensors say too.
absl::Status CheckOverrides(const JsonFields& fields) {
  LOCKSTEP_ASSIGN_OR_RETURN(const auto dynamic, fields.Object("dynamic"));
  if (!dynamic.has_value()) return absl::OkStatus();
  for (const auto& [pattern, value] : fields.Find("dynamic")->items()) {
    if (!absl::StartsWith(pattern, "-:")) {
      return fields.Unsupported("dynamic",
                                "only overrides that begin with \"-:\" are");
    }
  }
  return absl::OkStatus();
}

absl::Status ReadGptq(const json& object, const JsonFields& fields,
                      QuantizationConfig* config) {
  LOCKSTEP_RETURN_IF_ERROR(RefuseOthers(
      object, fields,
      {"bits", "group_size", "desc_act", "sym", "checkpoint_format", "format",
       "is_marlin_format", "lm_head", "dynamic", "pack_dtype"}));
  WeightScheme scheme = {.has_zeros = true};
  LOCKSTEP_ASSIGN_OR_RETURN(scheme.bits, ReadBits(fields, "bits", {4, 8}));
  LOCKSTEP_ASSIGN_OR_RETURN(scheme.group_cols, ReadGroup(fields, "group_size"));
  config->schemes.push_back(scheme);
  // Both are as the tensors have them.
  for (const char* name : {"desc_act", "sym", "lm_head"}) {
    LOCKSTEP_RETURN_IF_ERROR(fields.BoolOr(name, false).status());
  }
  LOCKSTEP_RETURN_IF_ERROR(RequireBool(fields, "is_marlin_format", false));
  LOCKSTEP_RETURN_IF_ERROR(OneOf(fields, "pack_dtype", {"int32"}).status());
  const char* format = fields.Find("checkpoint_format") != nullptr
                           ? "checkpoint_format"
                           : "format";
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string version,
                            OneOf(fields, format, {"gptq", "gptq_v2"}));
  config->zero_offset = version == "gptq" ? 1 : 0;
  return CheckOverrides(fields);
}

absl::Status ReadAwq(const json& object, const JsonFields& fields,
                     QuantizationConfig* config) {
  LOCKSTEP_RETURN_IF_ERROR(
      RefuseOthers(object, fields,
                   {"bits", "w_bit", "group_size", "q_group_size", "zero_point",
                    "version", "modules_to_not_convert"}));
  const bool old_names = fields.Find("bits") == nullptr;
  WeightScheme scheme = {.has_zeros = true};
  LOCKSTEP_ASSIGN_OR_RETURN(
      scheme.bits, ReadBits(fields, old_names ? "w_bit" : "bits", {4}));
  const char* group =
      fields.Find("group_size") == nullptr ? "q_group_size" : "group_size";
  LOCKSTEP_ASSIGN_OR_RETURN(scheme.group_cols, ReadGroup(fields, group));
  config->schemes.push_back(scheme);
  LOCKSTEP_RETURN_IF_ERROR(RequireBool(fields, "zero_point", true));
  LOCKSTEP_RETURN_IF_ERROR(OneOf(fields, "version", {"gemm", "GEMM"}).status());
  return AddNames(fields, "modules_to_not_convert", &config->plain_modules);
}

// `weights` of a group of compressed-tensors.
absl::StatusOr<WeightScheme> ReadWeights(const json& object,
                                         const JsonFields& fields) {
  LOCKSTEP_RETURN_IF_ERROR(
      RefuseOthers(object, fields,
                   {"num_bits", "type", "symmetric", "strategy", "group_size",
                    "block_structure", "dynamic", "actorder"}));
  WeightScheme scheme;
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string type,
                            OneOf(fields, "type", {"int", "float"}));
  scheme.is_float = type == "float";
  LOCKSTEP_ASSIGN_OR_RETURN(
      scheme.bits, scheme.is_float ? ReadBits(fields, "num_bits", {8})
                                   : ReadBits(fields, "num_bits", {4, 8}));
  LOCKSTEP_ASSIGN_OR_RETURN(const bool symmetric,
                            fields.BoolOr("symmetric", true));
  if (!symmetric && scheme.is_float) {
    return fields.Unsupported("symmetric", "only true is for floats");
  }
  scheme.has_zeros = !symmetric;
  LOCKSTEP_RETURN_IF_ERROR(RequireBool(fields, "dynamic", false));
  LOCKSTEP_RETURN_IF_ERROR(
      OneOf(fields, "actorder", {"static", "weight", "group", "dynamic"})
          .status());
  LOCKSTEP_ASSIGN_OR_RETURN(
      const std::string strategy,
      OneOf(fields, "strategy", {"tensor", "channel", "group", "block"}));
  if (strategy == "group") {
    LOCKSTEP_ASSIGN_OR_RETURN(scheme.group_cols,
                              ReadGroup(fields, "group_size"));
  } else if (strategy == "block") {
    if (fields.Find("block_structure") == nullptr) {
      return fields.Unexpected("block_structure", "two sizes");
    }
    LOCKSTEP_RETURN_IF_ERROR(ReadBlock(fields, "block_structure", &scheme));
  }
  return scheme;
}

constexpr Names kFormats = {"pack-quantized", "int-quantized",
                            "float-quantized", "naive-quantized"};

absl::Status ReadGroups(const JsonFields& fields, QuantizationConfig* config) {
  LOCKSTEP_ASSIGN_OR_RETURN(const auto groups, fields.Object("config_groups"));
  if (!groups.has_value()) return fields.Unexpected("config_groups", "groups");
  for (const auto& [name, group] : fields.Find("config_groups")->items()) {
    LOCKSTEP_ASSIGN_OR_RETURN(const auto parts, groups->Object(name));
    if (!parts.has_value()) return groups->Unexpected(name, "an object");
    // Which modules: their tensors say. Activations are not rounded here.
    LOCKSTEP_RETURN_IF_ERROR(
        RefuseOthers(group, *parts,
                     {"targets", "weights", "input_activations",
                      "output_activations", "format"}));
    LOCKSTEP_RETURN_IF_ERROR(OneOf(*parts, "format", kFormats).status());
    LOCKSTEP_ASSIGN_OR_RETURN(const auto weights, parts->Object("weights"));
    if (!weights.has_value()) return parts->Unexpected("weights", "an object");
    LOCKSTEP_ASSIGN_OR_RETURN(const WeightScheme scheme,
                              ReadWeights(*parts->Find("weights"), *weights));
    config->schemes.push_back(scheme);
  }
  return absl::OkStatus();
}

absl::Status ReadCompressedTensors(const json& object, const JsonFields& fields,
                                   QuantizationConfig* config) {
  LOCKSTEP_RETURN_IF_ERROR(
      RefuseOthers(object, fields,
                   {"format", "config_groups", "ignore", "quantization_status",
                    "sparsity_config", "transform_config"}));
  // "mixed-precision": each group says its own.
  LOCKSTEP_RETURN_IF_ERROR(
      OneOf(fields, "format",
            {"pack-quantized", "int-quantized", "float-quantized",
             "naive-quantized", "mixed-precision"})
          .status());
  LOCKSTEP_RETURN_IF_ERROR(
      OneOf(fields, "quantization_status", {"compressed", "frozen"}).status());
  for (const char* name : {"sparsity_config", "transform_config"}) {
    LOCKSTEP_ASSIGN_OR_RETURN(const auto part, fields.Object(name));
    if (!part.has_value() || fields.Find(name)->empty()) continue;
    LOCKSTEP_ASSIGN_OR_RETURN(const std::string format,
                              part->StringOr("format", ""));
    if (format != "dense") {
      return fields.Unsupported(name, "only an empty one is");
    }
  }
  LOCKSTEP_RETURN_IF_ERROR(AddNames(fields, "ignore", &config->plain_modules));
  return ReadGroups(fields, config);
}

// Of the whole config or, of a model with vision, of its text part.
const json* FindConfig(const JsonFields& fields) {
  for (const char* name : {"quantization_config", "compression_config"}) {
    if (const json* found = fields.Find(name)) return found;
  }
  return nullptr;
}

}  // namespace

absl::StatusOr<std::optional<QuantizationConfig>> ReadQuantizationConfig(
    const json& config, const std::string& path) {
  const JsonFields whole(config, path);
  const json* object = FindConfig(whole);
  if (object == nullptr && whole.Find("text_config") != nullptr) {
    object = FindConfig(JsonFields(*whole.Find("text_config"), path));
  }
  if (object == nullptr) return std::optional<QuantizationConfig>();
  const JsonFields fields(*object, path + ", in \"quantization_config\"");
  QuantizationConfig quantization;
  if (!object->is_object() || fields.Find("quant_method") == nullptr) {
    return fields.Unexpected("quant_method", "a name");
  }
  LOCKSTEP_ASSIGN_OR_RETURN(
      const std::string method,
      OneOf(fields, "quant_method",
            {"fp8", "gptq", "awq", "compressed-tensors"}));
  quantization.text = object->dump(-1, ' ', /*ensure_ascii=*/true,
                                   json::error_handler_t::replace);
  absl::Status status;
  if (method == "fp8") {
    quantization.method = Method::kFp8;
    status = ReadFp8(*object, fields, &quantization);
  } else if (method == "gptq") {
    quantization.method = Method::kGptq;
    status = ReadGptq(*object, fields, &quantization);
  } else if (method == "awq") {
    quantization.method = Method::kAwq;
    status = ReadAwq(*object, fields, &quantization);
  } else {
    quantization.method = Method::kCompressedTensors;
    status = ReadCompressedTensors(*object, fields, &quantization);
  }
  LOCKSTEP_RETURN_IF_ERROR(status);
  return std::optional<QuantizationConfig>(std::move(quantization));
}

}  // namespace lockstep
