#include "worker/checkpoint/safetensors_file.h"

#include <absl/strings/escaping.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "common/status_macros.h"
#include "common/strict_json.h"

namespace lockstep {
namespace {

using kernels::DType;
using nlohmann::json;

constexpr uint64_t kMaxHeaderBytes = 100'000'000;  // as the reference reader
constexpr size_t kMaxDimensions = 8;
constexpr char kMetadata[] = "__metadata__";

constexpr DType kTypes[] = {DType::kF32,     DType::kF16, DType::kBF16,
                            DType::kF8_E4M3, DType::kI8,  DType::kI32,
                            DType::kI64};

std::optional<DType> TypeNamed(absl::string_view name) {
  for (const DType type : kTypes) {
    if (name == kernels::DTypeName(type)) return type;
  }
  return std::nullopt;
}

std::string TypeNames() {
  return absl::StrJoin(kTypes, ", ", [](std::string* out, DType type) {
    absl::StrAppend(out, kernels::DTypeName(type));
  });
}

// The entry of one tensor in the header.
class Entry {
 public:
  Entry(const std::string& path, const std::string& name, const json& entry)
      : path_(path), name_(name), entry_(entry) {}

  // `data` is all tensors' bytes.
  absl::StatusOr<Tensor> Read(absl::Span<const uint8_t> data) const {
    Tensor tensor;
    tensor.name = name_;
    LOCKSTEP_ASSIGN_OR_RETURN(tensor.type, ReadType());
    LOCKSTEP_ASSIGN_OR_RETURN(tensor.shape, ReadShape());
    LOCKSTEP_ASSIGN_OR_RETURN(const auto offsets,
                              ReadNumbers("data_offsets", /*most=*/2));
    if (offsets.size() != 2 || offsets[0] > offsets[1] ||
        offsets[1] > data.size()) {
      return Error(absl::StrCat("data_offsets are [",
                                absl::StrJoin(offsets, ", "),
                                "], expected a begin and an end up to ",
                                data.size(), ", the bytes there are"));
    }
    tensor.bytes = data.subspan(offsets[0], offsets[1] - offsets[0]);
    const uint64_t expected =
        Elements(tensor.shape).value() * kernels::BlockBytes(tensor.type);
    if (tensor.bytes.size() != expected) {
      return Error(absl::StrCat("data_offsets span ", tensor.bytes.size(),
                                " bytes, expected ", expected, " for ",
                                kernels::DTypeName(tensor.type), " [",
                                absl::StrJoin(tensor.shape, ", "), "]"));
    }
    return tensor;
  }

 private:
  absl::Status Error(absl::string_view what) const {
    return absl::InvalidArgumentError(absl::StrCat(
        path_, ": tensor \"", absl::CHexEscape(name_.substr(0, 200)),
        "\": ", what, "."));
  }

  absl::StatusOr<DType> ReadType() const {
    const auto field = entry_.find("dtype");
    if (field == entry_.end() || !field->is_string()) {
      return Error("dtype is missing, expected a name");
    }
    const std::string name = field->get<std::string>();
    if (const auto type = TypeNamed(name)) return *type;
    return absl::UnimplementedError(absl::StrCat(
        path_, ": tensor \"", absl::CHexEscape(name_.substr(0, 200)),
        "\" is of type ", absl::CHexEscape(name.substr(0, 20)),
        ", which is not supported; supported are ", TypeNames(), "."));
  }

  absl::StatusOr<std::vector<int64_t>> ReadShape() const {
    LOCKSTEP_ASSIGN_OR_RETURN(auto shape, ReadNumbers("shape", kMaxDimensions));
    if (!Elements(shape).has_value()) {
      return Error(absl::StrCat("the shape [", absl::StrJoin(shape, ", "),
                                "] has a dimension of 0 or too many elements"));
    }
    return std::vector<int64_t>(shape.begin(), shape.end());
  }

  absl::StatusOr<std::vector<uint64_t>> ReadNumbers(const char* name,
                                                    size_t most) const {
    const auto field = entry_.find(name);
    if (field == entry_.end() || !field->is_array() || field->size() > most) {
      return Error(absl::StrCat(name,
                                " is missing or wrong, expected a list "
                                "of up to ",
                                most, " numbers"));
    }
    std::vector<uint64_t> numbers;
    for (const json& number : *field) {
      if (!number.is_number_unsigned()) {
        return Error(absl::StrCat(name,
                                  " holds what is not an integer of at "
                                  "least 0"));
      }
      numbers.push_back(number.get<uint64_t>());
    }
    return numbers;
  }

  // Absent where a dimension is 0 or the elements' bytes would overflow.
  template <typename T>
  static std::optional<uint64_t> Elements(const std::vector<T>& shape) {
    uint64_t limit = std::numeric_limits<int64_t>::max() / sizeof(int64_t);
    uint64_t elements = 1;
    for (const T dimension : shape) {
      const uint64_t size = dimension;
      if (size == 0 || size > limit) return std::nullopt;
      limit /= size;
      elements *= size;
    }
    return elements;
  }

  const std::string& path_;
  const std::string& name_;
  const json& entry_;
};

absl::StatusOr<json> ReadHeader(absl::Span<const uint8_t> bytes,
                                const std::string& path) {
  const auto error = [&path](const auto&... what) {
    return absl::InvalidArgumentError(absl::StrCat(path, what...));
  };
  uint64_t size;
  if (bytes.size() < sizeof(size)) {
    return error(" is truncated: it has ", bytes.size(),
                 " bytes, expected at least 8.");
  }
  std::memcpy(&size, bytes.data(), sizeof(size));
  if (size > kMaxHeaderBytes || size > bytes.size() - sizeof(size)) {
    return error(
        " is truncated or no safetensors file: its header is said to "
        "take ",
        size, " bytes, expected at most ",
        std::min<uint64_t>(kMaxHeaderBytes, bytes.size() - sizeof(size)), ".");
  }
  const absl::string_view text(
      reinterpret_cast<const char*>(bytes.data()) + sizeof(size), size);
  LOCKSTEP_ASSIGN_OR_RETURN(
      json header, ParseStrictJson(text, absl::StrCat("the header of ", path)));
  if (!header.is_object()) {
    return error(": the header is not a JSON object.");
  }
  return header;
}

// Whether the tensors fill `data`, each byte once.
absl::Status CheckLayout(const SafetensorsFile::Tensors& tensors,
                         absl::Span<const uint8_t> data,
                         const std::string& path) {
  std::vector<const Tensor*> by_place;
  for (const auto& [name, tensor] : tensors) by_place.push_back(&tensor);
  std::sort(by_place.begin(), by_place.end(),
            [](const Tensor* a, const Tensor* b) {
              return a->bytes.data() < b->bytes.data();
            });
  const uint8_t* end = data.data();
  for (const Tensor* tensor : by_place) {
    if (tensor->bytes.data() != end) {
      return absl::InvalidArgumentError(
          absl::StrCat(path, ": tensor \"", absl::CHexEscape(tensor->name),
                       "\" begins at byte ", tensor->bytes.data() - data.data(),
                       " of the data, expected ", end - data.data(),
                       ", where the tensor before it ends."));
    }
    end += tensor->bytes.size();
  }
  if (end == data.data() + data.size()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(path, ": the tensors end at byte ", end - data.data(),
                   " of the data, which has ", data.size(), "."));
}

}  // namespace

absl::StatusOr<std::unique_ptr<SafetensorsFile>> SafetensorsFile::Open(
    const std::string& path) {
  LOCKSTEP_ASSIGN_OR_RETURN(auto mapped, MappedFile::Open(path));
  LOCKSTEP_ASSIGN_OR_RETURN(auto file, Parse(mapped->bytes(), path));
  file->file_ = std::move(mapped);
  return file;
}

absl::StatusOr<std::unique_ptr<SafetensorsFile>> SafetensorsFile::Parse(
    absl::Span<const uint8_t> bytes, const std::string& name) {
  LOCKSTEP_ASSIGN_OR_RETURN(const json header, ReadHeader(bytes, name));
  uint64_t header_size;
  std::memcpy(&header_size, bytes.data(), sizeof(header_size));
  const auto data = bytes.subspan(sizeof(header_size) + header_size);

  std::unique_ptr<SafetensorsFile> file(new SafetensorsFile);
  file->path_ = name;
  for (const auto& [tensor_name, entry] : header.items()) {
    if (tensor_name == kMetadata) continue;
    LOCKSTEP_ASSIGN_OR_RETURN(Tensor tensor,
                              Entry(name, tensor_name, entry).Read(data));
    file->tensors_.try_emplace(tensor_name, std::move(tensor));
  }
  LOCKSTEP_RETURN_IF_ERROR(CheckLayout(file->tensors_, data, name));
  return file;
}

}  // namespace lockstep
