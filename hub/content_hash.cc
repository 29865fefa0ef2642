#include "hub/content_hash.h"

#include <absl/strings/escaping.h>
#include <absl/strings/str_cat.h>

#include <algorithm>

namespace lockstep {
namespace {

constexpr size_t kSha256Digits = 64;
constexpr size_t kGitDigits = 40;

bool IsLowerHexDigit(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
}

}  // namespace

std::optional<ContentHash> ContentHash::Like(absl::string_view name,
                                             int64_t size) {
  if (!std::all_of(name.begin(), name.end(), IsLowerHexDigit)) {
    return std::nullopt;
  }
  if (name.size() == kSha256Digits) {
    return ContentHash("SHA-256", EVP_sha256());
  }
  if (name.size() != kGitDigits) return std::nullopt;
  ContentHash hash("git hash", EVP_sha1());
  hash.Add(absl::StrCat("blob ", size));
  hash.Add(absl::string_view("\0", 1));
  return hash;
}

ContentHash::ContentHash(const char* kind, const EVP_MD* type)
    : kind_(kind), context_(EVP_MD_CTX_new(), &EVP_MD_CTX_free) {
  EVP_DigestInit_ex(context_.get(), type, nullptr);
}

void ContentHash::Add(absl::string_view bytes) {
  EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size());
}

std::string ContentHash::Finish() {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  EVP_DigestFinal_ex(context_.get(), digest, &size);
  return absl::BytesToHexString(
      absl::string_view(reinterpret_cast<const char*>(digest), size));
}

}  // namespace lockstep
