#pragma once

#include <absl/strings/string_view.h>
#include <absl/types/span.h>

#include <array>
#include <cstdint>
#include <string>

namespace lockstep {

// The first 16 bytes of a SHA-256.
using Digest = std::array<uint8_t, 16>;

std::string ToHex(const Digest& digest);

// Collects integers and bytes, in a form that is the same on every machine,
// and digests them.
//
//   DigestBuilder builder;
//   builder.Add(step);
//   builder.Add(pages);
//   const Digest digest = builder.Finish();
//
// Not thread-safe. Its buffer is kept by Finish, so a builder that is used
// again allocates nothing.
class DigestBuilder {
 public:
  void Add(uint64_t value);
  void Add(absl::string_view bytes);            // with its size
  void Add(absl::Span<const uint32_t> values);  // with their number
  void Add(absl::Span<const int32_t> values);
  void Add(const Digest& digest);

  // The digest of all that was added since the last Finish.
  Digest Finish();

 private:
  std::string buffer_;
};

}  // namespace lockstep
