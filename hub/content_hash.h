#pragma once

#include <absl/strings/string_view.h>
#include <openssl/evp.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace lockstep {

// The hash by which a hub names a file's content: the SHA-256 of a large file
// (git-lfs), git's SHA-1 of any other ("blob SIZE\0", then its bytes).
//
//   auto hash = ContentHash::Like(etag, size);  // a name, of 64 or 40 digits
//   hash->Add(bytes);
//   hash->Finish() == etag
//
// One thread.
class ContentHash {
 public:
  // Nothing where `name` is neither; its digits are in lower case.
  static std::optional<ContentHash> Like(absl::string_view name, int64_t size);

  void Add(absl::string_view bytes);

  // In hexadecimal. Once.
  std::string Finish();

  // "SHA-256"
  const char* kind() const { return kind_; }

 private:
  ContentHash(const char* kind, const EVP_MD* type);

  const char* kind_;
  std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context_;
};

}  // namespace lockstep
