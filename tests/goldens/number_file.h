#pragma once

#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>
#include <absl/types/span.h>

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "common/mapped_file.h"

namespace lockstep::goldens {

// A safetensors file of numbers to compare with, F32 and I32: the worker's own
// reader knows weights only.
//
//   LOCKSTEP_ASSIGN_OR_RETURN(auto file, NumberFile::Open(path));
//   LOCKSTEP_ASSIGN_OR_RETURN(auto ids, file->Read<int32_t>("p0.ids"));
class NumberFile {
 public:
  template <typename T>
  struct Array {
    std::vector<int64_t> shape;
    std::vector<T> values;  // row-major
  };

  static absl::StatusOr<std::unique_ptr<NumberFile>> Open(
      const std::string& path);

  bool Has(absl::string_view name) const;

  // T is float or int32_t. NOT_FOUND, or INVALID_ARGUMENT where the entry is of
  // another type or does not fit the file, names file and tensor.
  template <typename T>
  absl::StatusOr<Array<T>> Read(absl::string_view name) const;

 private:
  NumberFile(std::unique_ptr<MappedFile> file, nlohmann::json header,
             size_t data_begin);

  // The bytes of `name`, which must be of `dtype`; sets `shape`.
  absl::StatusOr<absl::Span<const uint8_t>> Find(
      absl::string_view name, const char* dtype,
      std::vector<int64_t>* shape) const;

  const std::unique_ptr<MappedFile> file_;
  const nlohmann::json header_;
  const size_t data_begin_;
};

}  // namespace lockstep::goldens
