#include "tests/goldens/number_file.h"

#include <absl/status/status.h>
#include <absl/strings/str_cat.h>

#include <cstring>
#include <utility>

#include "common/status_macros.h"

namespace lockstep::goldens {
namespace {

using nlohmann::json;

constexpr size_t kSizeBytes = sizeof(uint64_t);

const char* TypeName(float) { return "F32"; }
const char* TypeName(int32_t) { return "I32"; }

// Of an entry that is a list of integers; else empty.
std::vector<int64_t> Integers(const json& entry, const char* field) {
  std::vector<int64_t> numbers;
  if (!entry.contains(field) || !entry[field].is_array()) return numbers;
  for (const json& number : entry[field]) {
    if (!number.is_number_integer()) return {};
    numbers.push_back(number);
  }
  return numbers;
}

}  // namespace

NumberFile::NumberFile(std::unique_ptr<MappedFile> file, json header,
                       size_t data_begin)
    : file_(std::move(file)),
      header_(std::move(header)),
      data_begin_(data_begin) {}

absl::StatusOr<std::unique_ptr<NumberFile>> NumberFile::Open(
    const std::string& path) {
  LOCKSTEP_ASSIGN_OR_RETURN(auto file, MappedFile::Open(path));
  const auto bytes = file->bytes();
  uint64_t header_size = 0;
  if (bytes.size() >= kSizeBytes) {
    std::memcpy(&header_size, bytes.data(), kSizeBytes);
  }
  if (header_size == 0 || header_size > bytes.size() - kSizeBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": not a safetensors file: a header of ",
                     header_size, " bytes in a file of ", bytes.size()));
  }
  const uint8_t* text = bytes.data() + kSizeBytes;
  json header = json::parse(text, text + header_size, nullptr,
                            /*allow_exceptions=*/false);
  if (!header.is_object()) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": the header is not a JSON object"));
  }
  return std::unique_ptr<NumberFile>(new NumberFile(
      std::move(file), std::move(header), kSizeBytes + header_size));
}

bool NumberFile::Has(absl::string_view name) const {
  return header_.contains(std::string(name));
}

absl::StatusOr<absl::Span<const uint8_t>> NumberFile::Find(
    absl::string_view name, const char* dtype,
    std::vector<int64_t>* shape) const {
  const auto entry = header_.find(std::string(name));
  if (entry == header_.end()) {
    return absl::NotFoundError(
        absl::StrCat(file_->path(), ": no tensor ", name));
  }
  const auto error = [&](const auto&... what) {
    return absl::InvalidArgumentError(
        absl::StrCat(file_->path(), ": tensor ", name, what...));
  };
  if (!entry->contains("dtype") || (*entry)["dtype"] != dtype) {
    return error(" is not of type ", dtype);
  }
  *shape = Integers(*entry, "shape");
  const std::vector<int64_t> offsets = Integers(*entry, "data_offsets");
  const int64_t available = file_->bytes().size() - data_begin_;
  if (offsets.size() != 2 || offsets[0] < 0 || offsets[1] < offsets[0] ||
      offsets[1] > available) {
    return error(" lies outside of the file's ", available, " bytes of data");
  }
  // Every value has four bytes.
  int64_t left = (offsets[1] - offsets[0]) / 4;
  for (const int64_t dimension : *shape) {
    if (dimension <= 0 || left % dimension != 0) {
      return error(" has a shape that does not fit its bytes");
    }
    left /= dimension;
  }
  if (left != 1) return error(" has a shape that does not fit its bytes");
  return file_->bytes().subspan(data_begin_ + offsets[0],
                                offsets[1] - offsets[0]);
}

template <typename T>
absl::StatusOr<NumberFile::Array<T>> NumberFile::Read(
    absl::string_view name) const {
  Array<T> array;
  LOCKSTEP_ASSIGN_OR_RETURN(const auto bytes,
                            Find(name, TypeName(T()), &array.shape));
  array.values.resize(bytes.size() / sizeof(T));
  std::memcpy(array.values.data(), bytes.data(),
              array.values.size() * sizeof(T));
  return array;
}

template absl::StatusOr<NumberFile::Array<float>> NumberFile::Read(
    absl::string_view) const;
template absl::StatusOr<NumberFile::Array<int32_t>> NumberFile::Read(
    absl::string_view) const;

}  // namespace lockstep::goldens
