// The functions that OpenSSL recommends look their algorithm up and allocate,
// some in every call; a step makes two.
#define OPENSSL_SUPPRESS_DEPRECATED

#include "common/digest.h"

#include <absl/strings/escaping.h>
#include <openssl/sha.h>

#include <bit>
#include <cstring>

namespace lockstep {

static_assert(std::endian::native == std::endian::little,
              "digests and wire formats are written as they lie in memory");

std::string ToHex(const Digest& digest) {
  return absl::BytesToHexString(absl::string_view(
      reinterpret_cast<const char*>(digest.data()), digest.size()));
}

void DigestBuilder::Add(uint64_t value) {
  buffer_.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

void DigestBuilder::Add(absl::string_view bytes) {
  Add(uint64_t{bytes.size()});
  buffer_.append(bytes.data(), bytes.size());
}

void DigestBuilder::Add(absl::Span<const uint32_t> values) {
  Add(uint64_t{values.size()});
  buffer_.append(reinterpret_cast<const char*>(values.data()),
                 values.size() * sizeof(uint32_t));
}

void DigestBuilder::Add(absl::Span<const int32_t> values) {
  Add(absl::MakeConstSpan(reinterpret_cast<const uint32_t*>(values.data()),
                          values.size()));
}

void DigestBuilder::Add(const Digest& digest) {
  buffer_.append(reinterpret_cast<const char*>(digest.data()), digest.size());
}

Digest DigestBuilder::Finish() {
  uint8_t hash[SHA256_DIGEST_LENGTH];
  SHA256_CTX context;
  SHA256_Init(&context);
  SHA256_Update(&context, buffer_.data(), buffer_.size());
  SHA256_Final(hash, &context);
  buffer_.clear();
  Digest digest;
  std::memcpy(digest.data(), hash, digest.size());
  return digest;
}

}  // namespace lockstep
