#include "common/security/secret.h"

#include <absl/strings/ascii.h>
#include <absl/strings/escaping.h>
#include <absl/strings/str_cat.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>

#include <algorithm>
#include <string>

namespace lockstep {

SecretDigest SecretDigest::Of(absl::string_view secret) {
  SecretDigest digest;
  EVP_Digest(secret.data(), secret.size(), digest.bytes_.data(), nullptr,
             EVP_sha256(), nullptr);
  return digest;
}

absl::StatusOr<SecretDigest> SecretDigest::FromHex(absl::string_view hex) {
  SecretDigest digest;
  if (hex.size() != 2 * digest.bytes_.size() ||
      !std::all_of(hex.begin(), hex.end(), absl::ascii_isxdigit)) {
    return absl::InvalidArgumentError(
        absl::StrCat("a SHA-256 has ", 2 * digest.bytes_.size(),
                     " hexadecimal digits, not ", hex.size(), " characters"));
  }
  const std::string bytes = absl::HexStringToBytes(hex);
  std::copy(bytes.begin(), bytes.end(), digest.bytes_.begin());
  return digest;
}

bool SecretDigest::Matches(const SecretDigest& other) const {
  return CRYPTO_memcmp(bytes_.data(), other.bytes_.data(), bytes_.size()) == 0;
}

}  // namespace lockstep
