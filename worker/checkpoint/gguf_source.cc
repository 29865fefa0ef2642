#include "worker/checkpoint/gguf_source.h"

#include <absl/strings/escaping.h>
#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <absl/types/span.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/status_macros.h"
#include "worker/checkpoint/gguf_names.h"
#include "worker/model_spec/architecture.h"
#include "worker/model_spec/gguf_reader.h"

namespace lockstep {
namespace {

using kernels::DType;

// ggml.h, enum ggml_type: those that are supported.
struct GgmlType {
  uint32_t number;
  DType type;
};
constexpr GgmlType kTypes[] = {
    {0, DType::kF32},     {1, DType::kF16},     {2, DType::kQ4_0},
    {3, DType::kQ4_1},    {6, DType::kQ5_0},    {7, DType::kQ5_1},
    {8, DType::kQ8_0},    {10, DType::kQ2_K},   {11, DType::kQ3_K},
    {12, DType::kQ4_K},   {13, DType::kQ5_K},   {14, DType::kQ6_K},
    {20, DType::kIQ4_NL}, {23, DType::kIQ4_XS}, {30, DType::kBF16},
    {39, DType::kMXFP4},
};

// Names of others, for the message.
struct OtherType {
  uint32_t number;
  const char* name;
};
constexpr OtherType kOtherTypes[] = {
    {15, "Q8_K"},  {16, "IQ2_XXS"}, {17, "IQ2_XS"}, {18, "IQ3_XXS"},
    {19, "IQ1_S"}, {21, "IQ3_S"},   {22, "IQ2_S"},  {24, "I8"},
    {25, "I16"},   {26, "I32"},     {27, "I64"},    {28, "F64"},
    {29, "IQ1_M"}, {34, "TQ1_0"},   {35, "TQ2_0"},
};

std::string Quoted(const std::string& name) {
  return absl::StrCat("\"", absl::CHexEscape(name.substr(0, 200)), "\"");
}

absl::Status UnsupportedType(const std::string& where, uint32_t number) {
  std::string name = "a type that is not known";
  for (const OtherType& type : kOtherTypes) {
    if (type.number == number) name = type.name;
  }
  std::string supported;
  for (const GgmlType& type : kTypes) {
    absl::StrAppend(&supported, supported.empty() ? "" : ", ",
                    kernels::DTypeName(type.type));
  }
  return absl::UnimplementedError(absl::StrCat(
      where, " is of ggml's type ", number, " (", name,
      "), which is not supported; supported are ", supported, "."));
}

// By its name in the file.
absl::StatusOr<Tensor> ReadTensor(const GgufFile& file,
                                  const std::string& gguf_name,
                                  const GgufFile::TensorInfo& info) {
  const std::string where =
      absl::StrCat(file.path(), ": tensor ", Quoted(gguf_name));
  const auto* type = std::find_if(
      std::begin(kTypes), std::end(kTypes),
      [&info](const GgmlType& t) { return t.number == info.type; });
  if (type == std::end(kTypes)) return UnsupportedType(where, info.type);

  const int64_t cols = info.shape.back();
  const int block = kernels::BlockValues(type->type);
  if (cols % block != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        where, " has rows of ", cols, " values, expected a multiple of ", block,
        " for ", kernels::DTypeName(type->type), "."));
  }
  int64_t elements = 1;  // in 63 bits: GgufFile has seen to that
  for (const int64_t dimension : info.shape) elements *= dimension;
  const uint64_t blocks = elements / block;
  const uint64_t left = file.bytes().size() - info.offset;
  if (blocks > left / kernels::BlockBytes(type->type)) {
    return absl::InvalidArgumentError(absl::StrCat(
        where, " takes ", blocks, " blocks of ",
        kernels::BlockBytes(type->type), " bytes from byte ", info.offset,
        ", expected at most ", left, " bytes, which are left in the file."));
  }
  return Tensor{gguf_name, type->type, info.shape,
                file.bytes().subspan(info.offset,
                                     blocks * kernels::BlockBytes(type->type))};
}

// By its name in the file, and by one that it has as well.
absl::Status ThereTwice(const GgufFile& file, const std::string& gguf_name,
                        const std::string& name) {
  return absl::InvalidArgumentError(
      absl::StrCat(file.path(), ": tensor ", Quoted(gguf_name),
                   " is there under another name, or in another file, ",
                   Quoted(name), ", as well."));
}

// Where a tensor lies, by its name in the file.
struct Extent {
  const std::string* name;
  absl::Span<const uint8_t> bytes;
};

absl::Status CheckOverlaps(const GgufFile& file, std::vector<Extent> extents) {
  std::sort(extents.begin(), extents.end(),
            [](const Extent& a, const Extent& b) {
              return a.bytes.data() < b.bytes.data();
            });
  for (size_t i = 1; i < extents.size(); ++i) {
    const Extent& before = extents[i - 1];
    const uint8_t* const end = before.bytes.data() + before.bytes.size();
    if (extents[i].bytes.data() < end) {
      return absl::InvalidArgumentError(absl::StrCat(
          file.path(), ": tensor ", Quoted(*extents[i].name),
          " begins at byte ", extents[i].bytes.data() - file.bytes().data(),
          ", expected at least ", end - file.bytes().data(), ", where ",
          Quoted(*before.name), " ends."));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<GgufSource>> GgufSource::Create(
    std::unique_ptr<GgufFile> first,
    std::vector<std::unique_ptr<GgufFile>> others) {
  others.insert(others.begin(), std::move(first));
  std::unique_ptr<GgufSource> source(new GgufSource(std::move(others)));
  // One that is not known is refused with the metadata.
  const auto found = GgufArchitecture(*source->files_[0]);
  const Architecture* architecture =
      found.ok() ? *found : FindGgufArchitecture("llama", false);
  for (const auto& file : source->files_) {
    LOCKSTEP_RETURN_IF_ERROR(source->AddTensors(*file, *architecture));
  }
  LOCKSTEP_RETURN_IF_ERROR(source->CheckExperts());
  return source;
}

GgufSource::GgufSource(std::vector<std::unique_ptr<GgufFile>> files)
    : files_(std::move(files)) {}

absl::Status GgufSource::AddTensors(const GgufFile& file,
                                    const Architecture& architecture) {
  std::vector<Extent> extents;
  for (const auto& [gguf_name, info] : file.tensors()) {
    LOCKSTEP_ASSIGN_OR_RETURN(Tensor tensor, ReadTensor(file, gguf_name, info));
    extents.push_back({&gguf_name, tensor.bytes});
    LOCKSTEP_RETURN_IF_ERROR(AddTensor(file, std::move(tensor), architecture));
  }
  return CheckOverlaps(file, std::move(extents));
}

absl::Status GgufSource::AddTensor(const GgufFile& file, Tensor tensor,
                                   const Architecture& architecture) {
  auto experts = HuggingFaceExpertNames(tensor.name, architecture);
  if (!experts.empty() && tensor.shape.size() == 3) {
    return AddStack(file, tensor, std::move(experts));
  }
  const std::string gguf_name = tensor.name;
  tensor.name = HuggingFaceName(gguf_name, architecture);
  // A matrix of one row in Hugging Face's files.
  if (absl::EndsWith(tensor.name, "shared_expert_gate.weight") &&
      tensor.shape.size() == 1) {
    tensor.shape.insert(tensor.shape.begin(), 1);
  }
  const std::string name = tensor.name;
  if (!tensors_.try_emplace(name, std::move(tensor)).second) {
    return ThereTwice(file, gguf_name, name);
  }
  file_of_[name] = &file;
  return absl::OkStatus();
}

absl::Status GgufSource::AddStack(const GgufFile& file, const Tensor& tensor,
                                  std::vector<ExpertNames> names) {
  const int64_t parts = names.size();
  const int64_t rows = tensor.shape[1] / parts;
  if (tensor.shape[1] % parts != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        file.path(), ": tensor ", Quoted(tensor.name), " has ", tensor.shape[1],
        " rows for each expert, expected as many of gate as of up."));
  }
  for (int64_t i = 0; i < parts; ++i) {
    const auto* known =
        experts_.Add(std::move(names[i]),
                     {.tensor = tensor, .first_row = i * rows, .rows = rows});
    if (known != nullptr) {
      return ThereTwice(file, tensor.name, known->tensor.name);
    }
  }
  file_of_[tensor.name] = &file;
  return absl::OkStatus();
}

absl::Status GgufSource::CheckExperts() const {
  for (const auto& [name, tensor] : tensors_) {
    const auto* stack = experts_.StackOf(name);
    if (stack == nullptr) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        FileOf(name), ": tensor ", Quoted(name), " is there, and a part of ",
        Quoted(stack->tensor.name), " as well."));
  }
  return absl::OkStatus();
}

absl::StatusOr<Tensor> GgufSource::Get(absl::string_view name) const {
  const auto tensor = tensors_.find(name);
  if (tensor != tensors_.end()) return tensor->second;
  std::optional<Tensor> of_expert = experts_.Find(name);
  if (of_expert.has_value()) return *std::move(of_expert);
  return absl::NotFoundError(
      absl::StrCat(path(), " has no tensor ", name, "."));
}

void GgufSource::DropPages() const {
  for (const auto& file : files_) file->DropPages();
}

const std::string& GgufSource::FileOf(absl::string_view name) const {
  const auto* stack = experts_.StackOf(name);
  const auto file = stack == nullptr ? file_of_.find(name)
                                     : file_of_.find(stack->tensor.name);
  return file == file_of_.end() ? path() : file->second->path();
}

std::vector<std::string> GgufSource::Names() const {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : tensors_) names.push_back(name);
  experts_.AddNames(&names);
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace lockstep
