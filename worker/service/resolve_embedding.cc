#include "worker/service/resolve_embedding.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>

#include <algorithm>
#include <cstdint>
#include <string>

#include "common/status_macros.h"

namespace lockstep {
namespace {

absl::Status Refuse(uint32_t dimensions, const std::string& limit) {
  return absl::InvalidArgumentError(absl::StrCat(
      "embedding.dimensions is ", dimensions, ", it must be ", limit, "."));
}

absl::Status CheckDimensions(uint32_t dimensions,
                             const v1::EmbeddingInfo& info) {
  const uint32_t all = info.dimensions();
  if (dimensions == all) return absl::OkStatus();
  if (info.any_dimensions()) {
    if (dimensions >= 1 && dimensions < all) return absl::OkStatus();
    return Refuse(dimensions, absl::StrCat("from 1 to ", all));
  }
  const auto& fewer = info.fewer_dimensions();
  if (fewer.empty()) {
    return Refuse(dimensions,
                  absl::StrCat(all,
                               ": the model's files do not say that it "
                               "was made for fewer"));
  }
  if (std::find(fewer.begin(), fewer.end(), dimensions) != fewer.end()) {
    return absl::OkStatus();
  }
  return Refuse(dimensions, absl::StrCat("one of ", absl::StrJoin(fewer, ", "),
                                         " and ", all));
}

}  // namespace

absl::StatusOr<v1::ResolvedEmbedding> ResolveEmbedding(
    const v1::EmbeddingParams& params, const v1::EmbeddingInfo& info) {
  v1::ResolvedEmbedding resolved;
  resolved.set_pooling(info.pooling());
  if (params.has_pooling()) resolved.set_pooling(params.pooling());
  if (resolved.pooling() != v1::LAST_TOKEN && resolved.pooling() != v1::MEAN) {
    return absl::InvalidArgumentError(
        absl::StrCat("embedding.pooling is ", resolved.pooling(),
                     ", it must be LAST_TOKEN or MEAN."));
  }
  resolved.set_normalize(params.has_normalize() ? params.normalize()
                                                : info.normalize());
  resolved.set_dimensions(params.has_dimensions() ? params.dimensions()
                                                  : info.dimensions());
  LOCKSTEP_RETURN_IF_ERROR(CheckDimensions(resolved.dimensions(), info));
  return resolved;
}

}  // namespace lockstep
