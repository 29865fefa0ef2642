#include "common/gguf_file.h"

#include <absl/status/status.h>
#include <absl/strings/escaping.h>
#include <absl/strings/str_cat.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <utility>

#include "common/status_macros.h"

namespace lockstep {
namespace {

constexpr uint32_t kMagic = 0x46554747;  // "GGUF"
constexpr uint32_t kMaxDimensions = 4;
constexpr uint64_t kDefaultAlignment = 32;
constexpr uint64_t kMaxAlignment = 1 << 20;
constexpr size_t kMaxNameBytes = 65'535;
// The least a metadata entry (size of the key, key, type, value) and a tensor
// (size of the name, name, dimensions, one of them, type, offset) can take.
constexpr uint64_t kMinEntryBytes = 8 + 1 + 4 + 1;
constexpr uint64_t kMinTensorBytes = 8 + 1 + 4 + 8 + 4 + 8;

// A name out of the file, fit for a message.
std::string Quoted(absl::string_view name) {
  constexpr size_t kShown = 100;
  return absl::StrCat("\"", absl::CHexEscape(name.substr(0, kShown)),
                      name.size() > kShown ? "…" : "", "\"");
}

absl::StatusOr<std::string> ReadName(ByteCursor& cursor,
                                     absl::string_view what) {
  LOCKSTEP_ASSIGN_OR_RETURN(const absl::string_view name,
                            cursor.ReadString(what));
  if (name.empty() || name.size() > kMaxNameBytes) {
    return cursor.Error(absl::StrCat(what, " is ", name.size(),
                                     " bytes long, expected 1 to ",
                                     kMaxNameBytes, "."));
  }
  return std::string(name);
}

// The offset is still relative to the begin of the tensors' data.
absl::StatusOr<GgufFile::TensorInfo> ReadTensorInfo(ByteCursor& cursor,
                                                    absl::string_view what) {
  LOCKSTEP_ASSIGN_OR_RETURN(const uint32_t dimensions,
                            cursor.Read<uint32_t>(what));
  if (dimensions == 0 || dimensions > kMaxDimensions) {
    return cursor.Error(absl::StrCat(what, " has ", dimensions,
                                     " dimensions, expected 1 to ",
                                     kMaxDimensions, "."));
  }
  GgufFile::TensorInfo info;
  info.shape.resize(dimensions);
  uint64_t limit = std::numeric_limits<int64_t>::max();
  for (uint32_t i = 0; i < dimensions; ++i) {
    LOCKSTEP_ASSIGN_OR_RETURN(const uint64_t size, cursor.Read<uint64_t>(what));
    if (size == 0 || size > limit) {
      return cursor.Error(absl::StrCat("dimension ", i, " of ", what, " is ",
                                       size, ", expected 1 to ", limit, "."));
    }
    limit /= size;
    info.shape[dimensions - 1 - i] = static_cast<int64_t>(size);
  }
  LOCKSTEP_ASSIGN_OR_RETURN(info.type, cursor.Read<uint32_t>(what));
  LOCKSTEP_ASSIGN_OR_RETURN(info.offset, cursor.Read<uint64_t>(what));
  return info;
}

absl::Status Missing(const GgufFile& file, absl::string_view key) {
  return absl::NotFoundError(
      absl::StrCat(file.path(), " has no metadata \"", key, "\"."));
}

absl::Status WrongType(const GgufFile& file, absl::string_view key,
                       const GgufFile::Value& value,
                       absl::string_view expected) {
  return absl::InvalidArgumentError(
      absl::StrCat("the metadata \"", key, "\" of ", file.path(), " is ",
                   GgufTypeName(value), ", expected ", expected, "."));
}

// The value of `key`, which is a T.
template <typename T>
absl::StatusOr<const T*> Get(const GgufFile& file, absl::string_view key,
                             absl::string_view expected) {
  const GgufFile::Value* value = file.Find(key);
  if (value == nullptr) return Missing(file, key);
  const T* typed = std::get_if<T>(value);
  if (typed == nullptr) return WrongType(file, key, *value, expected);
  return typed;
}

}  // namespace

absl::StatusOr<std::unique_ptr<GgufFile>> GgufFile::Open(
    const std::string& path) {
  LOCKSTEP_ASSIGN_OR_RETURN(auto mapped, MappedFile::Open(path));
  LOCKSTEP_ASSIGN_OR_RETURN(auto file, Parse(mapped->bytes(), path));
  file->file_ = std::move(mapped);
  return file;
}

absl::StatusOr<std::unique_ptr<GgufFile>> GgufFile::Parse(
    absl::Span<const uint8_t> bytes, const std::string& name) {
  std::unique_ptr<GgufFile> file(new GgufFile);
  file->path_ = name;
  file->bytes_ = bytes;
  LOCKSTEP_RETURN_IF_ERROR(file->ParseAll());
  return file;
}

absl::Status GgufFile::ParseAll() {
  ByteCursor cursor(bytes_, path_);
  LOCKSTEP_ASSIGN_OR_RETURN(const uint32_t magic,
                            cursor.Read<uint32_t>("the magic number"));
  if (magic != kMagic) {
    return cursor.Error("this is no GGUF file: it does not begin with GGUF.");
  }
  LOCKSTEP_ASSIGN_OR_RETURN(const uint32_t version,
                            cursor.Read<uint32_t>("the version"));
  if (version != 2 && version != 3) {
    return cursor.Error(absl::StrCat("the version is ", version,
                                     ", expected 2 or 3, little-endian."));
  }
  LOCKSTEP_ASSIGN_OR_RETURN(
      const uint64_t num_tensors,
      cursor.ReadCount("the list of tensors", kMinTensorBytes));
  LOCKSTEP_ASSIGN_OR_RETURN(const uint64_t num_entries,
                            cursor.ReadCount("the metadata", kMinEntryBytes));
  LOCKSTEP_RETURN_IF_ERROR(ParseMetadata(cursor, num_entries));
  LOCKSTEP_RETURN_IF_ERROR(ParseTensors(cursor, num_tensors));
  return PlaceTensors(cursor);
}

absl::Status GgufFile::ParseMetadata(ByteCursor& cursor, uint64_t count) {
  for (uint64_t i = 0; i < count; ++i) {
    LOCKSTEP_ASSIGN_OR_RETURN(
        std::string key,
        ReadName(cursor, absl::StrCat("the key of metadata entry ", i)));
    const std::string what = absl::StrCat("the value of ", Quoted(key));
    LOCKSTEP_ASSIGN_OR_RETURN(Value value, ReadGgufValue(cursor, what));
    if (!metadata_.try_emplace(std::move(key), std::move(value)).second) {
      return cursor.Error(absl::StrCat(what, " is there twice."));
    }
  }
  return absl::OkStatus();
}

absl::Status GgufFile::ParseTensors(ByteCursor& cursor, uint64_t count) {
  for (uint64_t i = 0; i < count; ++i) {
    LOCKSTEP_ASSIGN_OR_RETURN(
        std::string name,
        ReadName(cursor, absl::StrCat("the name of tensor ", i)));
    const std::string what = absl::StrCat("tensor ", Quoted(name));
    LOCKSTEP_ASSIGN_OR_RETURN(TensorInfo info, ReadTensorInfo(cursor, what));
    if (!tensors_.try_emplace(std::move(name), std::move(info)).second) {
      return cursor.Error(absl::StrCat(what, " is there twice."));
    }
  }
  return absl::OkStatus();
}

absl::Status GgufFile::PlaceTensors(const ByteCursor& cursor) {
  uint64_t alignment = kDefaultAlignment;
  if (Find("general.alignment") != nullptr) {
    LOCKSTEP_ASSIGN_OR_RETURN(alignment, GetUint("general.alignment"));
  }
  if (!std::has_single_bit(alignment) || alignment > kMaxAlignment) {
    return cursor.Error(absl::StrCat("general.alignment is ", alignment,
                                     ", expected a power of two up to ",
                                     kMaxAlignment, "."));
  }
  const uint64_t begin =
      (cursor.position() + alignment - 1) / alignment * alignment;
  for (auto& [name, info] : tensors_) {
    if (info.offset % alignment != 0) {
      return cursor.Error(
          absl::StrCat("tensor ", Quoted(name), " has the offset ", info.offset,
                       ", expected a multiple of ", alignment, "."));
    }
    if (begin >= bytes_.size() || info.offset >= bytes_.size() - begin) {
      return cursor.Error(absl::StrCat(
          "the file is truncated or lies: tensor ", Quoted(name),
          " begins at byte ", info.offset, " of the tensors' data, which has ",
          bytes_.size() - std::min<uint64_t>(begin, bytes_.size()), "."));
    }
    info.offset += begin;
  }
  return absl::OkStatus();
}

const GgufFile::Value* GgufFile::Find(absl::string_view key) const {
  const auto entry = metadata_.find(key);
  return entry == metadata_.end() ? nullptr : &entry->second;
}

absl::StatusOr<uint64_t> GgufFile::GetUint(absl::string_view key) const {
  const Value* value = Find(key);
  if (value == nullptr) return Missing(*this, key);
  if (const auto* number = std::get_if<uint64_t>(value)) return *number;
  const auto* number = std::get_if<int64_t>(value);
  if (number != nullptr && *number >= 0) return *number;
  return WrongType(*this, key, *value, "an integer that is not negative");
}

absl::StatusOr<double> GgufFile::GetDouble(absl::string_view key) const {
  LOCKSTEP_ASSIGN_OR_RETURN(const double* value,
                            Get<double>(*this, key, "a float"));
  return *value;
}

absl::StatusOr<absl::string_view> GgufFile::GetString(
    absl::string_view key) const {
  LOCKSTEP_ASSIGN_OR_RETURN(const absl::string_view* value,
                            Get<absl::string_view>(*this, key, "a string"));
  return *value;
}

absl::StatusOr<const GgufFile::Strings*> GgufFile::GetStrings(
    absl::string_view key) const {
  return Get<Strings>(*this, key, "an array of strings");
}

absl::StatusOr<const std::vector<int64_t>*> GgufFile::GetInts(
    absl::string_view key) const {
  return Get<std::vector<int64_t>>(*this, key, "an array of integers");
}

}  // namespace lockstep
