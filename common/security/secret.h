#pragma once

#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>

#include <array>
#include <cstdint>

namespace lockstep {

// A secret, known by its SHA-256 alone: what is held can not be sent back as
// the secret. There is one comparison, which takes as long for a near miss as
// for any other.
//
//   const SecretDigest known = SecretDigest::Of(key);
//   if (known.Matches(SecretDigest::Of(given))) …
//
// A value; any thread.
class SecretDigest {
 public:
  static SecretDigest Of(absl::string_view secret);

  // 64 hexadecimal digits, as sha256sum prints them. INVALID_ARGUMENT
  // otherwise.
  static absl::StatusOr<SecretDigest> FromHex(absl::string_view hex);

  bool Matches(const SecretDigest& other) const;

 private:
  std::array<uint8_t, 32> bytes_ = {};
};

}  // namespace lockstep
