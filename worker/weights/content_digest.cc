#include "worker/weights/content_digest.h"

#include <algorithm>

#include "common/digest.h"
#include "common/status_macros.h"
#include "kernels/weights/dtype.h"

namespace lockstep {
namespace {

constexpr size_t kPieceBytes = 1 << 20;       // copied by a DigestBuilder
constexpr size_t kMostReadBytes = 256 << 20;  // before memory is given back

Digest DigestOf(const Tensor& tensor) {
  DigestBuilder tensor_builder, piece_builder;
  tensor_builder.Add(tensor.name);
  tensor_builder.Add(kernels::DTypeName(tensor.type));
  for (const int64_t size : tensor.shape) {
    tensor_builder.Add(static_cast<uint64_t>(size));
  }
  for (size_t at = 0; at < tensor.bytes.size(); at += kPieceBytes) {
    const auto piece = tensor.bytes.subspan(
        at, std::min(kPieceBytes, tensor.bytes.size() - at));
    piece_builder.Add(absl::string_view(
        reinterpret_cast<const char*>(piece.data()), piece.size()));
    tensor_builder.Add(piece_builder.Finish());
  }
  return tensor_builder.Finish();
}

}  // namespace

absl::StatusOr<ContentDigest> DigestContent(const TensorSource& stored) {
  DigestBuilder all;
  std::map<std::string, DigestBuilder> of_file;
  size_t read_bytes = 0;
  for (const std::string& name : stored.Names()) {
    LOCKSTEP_ASSIGN_OR_RETURN(const Tensor tensor, stored.Get(name));
    const Digest digest = DigestOf(tensor);
    all.Add(digest);
    of_file[stored.FileOf(name)].Add(digest);
    read_bytes += tensor.bytes.size();
    if (read_bytes < kMostReadBytes) continue;
    stored.DropPages();
    read_bytes = 0;
  }
  stored.DropPages();
  ContentDigest content = {.all = ToHex(all.Finish()), .of_file = {}};
  for (auto& [file, builder] : of_file) {
    content.of_file[file] = ToHex(builder.Finish());
  }
  return content;
}

}  // namespace lockstep
