#include "worker/checkpoint/gguf_parts.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>
#include <absl/strings/strip.h>

#include <cstdint>
#include <string>
#include <utility>

#include "common/status_macros.h"

namespace lockstep {
namespace {

constexpr char kCount[] = "split.count";
constexpr char kNumber[] = "split.no";  // from 0
constexpr char kTensors[] = "split.tensors.count";
constexpr uint64_t kMostParts = 99'999;  // as names have five digits

// "-00001-of-00003.gguf"
std::string EndOfName(uint64_t number, uint64_t count) {
  return absl::StrFormat("-%05d-of-%05d.gguf", number + 1, count);
}

absl::Status CheckPart(const GgufFile& part, uint64_t number, uint64_t count) {
  LOCKSTEP_ASSIGN_OR_RETURN(const uint64_t found_number, part.GetUint(kNumber));
  LOCKSTEP_ASSIGN_OR_RETURN(const uint64_t found_count, part.GetUint(kCount));
  if (found_number == number && found_count == count) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      part.path(), " says that it is part ", found_number, " of ", found_count,
      ", counted from 0, expected part ", number, " of ", count, "."));
}

absl::Status CheckTensorCount(const GgufFile& first, uint64_t tensors) {
  LOCKSTEP_ASSIGN_OR_RETURN(const uint64_t expected, first.GetUint(kTensors));
  if (tensors == expected) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(first.path(), " and its other parts have ", tensors,
                   " tensors, expected ", expected, ", as it says."));
}

}  // namespace

absl::StatusOr<std::vector<std::unique_ptr<GgufFile>>> OpenOtherParts(
    const GgufFile& first) {
  std::vector<std::unique_ptr<GgufFile>> parts;
  if (first.Find(kCount) == nullptr) return parts;
  LOCKSTEP_ASSIGN_OR_RETURN(const uint64_t count, first.GetUint(kCount));
  if (count <= 1) return parts;
  if (count > kMostParts) {
    return absl::InvalidArgumentError(
        absl::StrCat(first.path(), ": ", kCount, " is ", count,
                     ", expected at most ", kMostParts, "."));
  }
  LOCKSTEP_RETURN_IF_ERROR(CheckPart(first, 0, count));
  absl::string_view stem = first.path();
  if (!absl::ConsumeSuffix(&stem, EndOfName(0, count))) {
    return absl::InvalidArgumentError(absl::StrCat(
        first.path(), " is the first of ", count,
        " parts, so its name has to end with ", EndOfName(0, count), "."));
  }
  uint64_t tensors = first.tensors().size();
  for (uint64_t number = 1; number < count; ++number) {
    LOCKSTEP_ASSIGN_OR_RETURN(auto part, GgufFile::Open(absl::StrCat(
                                             stem, EndOfName(number, count))));
    LOCKSTEP_RETURN_IF_ERROR(CheckPart(*part, number, count));
    tensors += part->tensors().size();
    parts.push_back(std::move(part));
  }
  LOCKSTEP_RETURN_IF_ERROR(CheckTensorCount(first, tensors));
  return parts;
}

}  // namespace lockstep
