#include "common/security/tls_identity.h"

#include <absl/strings/str_cat.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <utility>
#include <vector>

#include "common/status_macros.h"

namespace lockstep {
namespace {

template <auto kFree>
struct Freed {
  template <typename T>
  void operator()(T* object) const {
    kFree(object);
  }
};
using Bio = std::unique_ptr<BIO, Freed<BIO_free>>;
using Certificate = std::unique_ptr<X509, Freed<X509_free>>;
using PrivateKey = std::unique_ptr<EVP_PKEY, Freed<EVP_PKEY_free>>;

Bio Reader(const std::string& pem) {
  return Bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
}

absl::Status Refuse(const NamedFile& file, absl::string_view why) {
  ERR_clear_error();
  return absl::InvalidArgumentError(
      absl::StrCat("--", file.flag, " is \"", file.path, "\", ", why, "."));
}

// Never asks a terminal.
int NoPassword(char*, int, int, void*) { return -1; }

absl::StatusOr<Certificate> FirstCertificate(const NamedFile& file,
                                             const std::string& pem) {
  const Bio bio = Reader(pem);
  Certificate first(PEM_read_bio_X509(bio.get(), nullptr, NoPassword, nullptr));
  if (first == nullptr) return Refuse(file, "which holds no PEM certificate");
  while (BIO_pending(bio.get()) > 0) {
    const Certificate next(
        PEM_read_bio_X509(bio.get(), nullptr, NoPassword, nullptr));
    if (next != nullptr) continue;
    // What follows the last one may be anything but half of another.
    if (ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE) break;
    return Refuse(file, "in which a certificate is damaged");
  }
  ERR_clear_error();
  return first;
}

absl::Status CheckTime(const NamedFile& file, const X509& certificate) {
  if (X509_cmp_current_time(X509_get0_notAfter(&certificate)) < 0) {
    return Refuse(file, "whose certificate has expired");
  }
  if (X509_cmp_current_time(X509_get0_notBefore(&certificate)) > 0) {
    return Refuse(file, "whose certificate is not valid yet");
  }
  return absl::OkStatus();
}

absl::Status CheckPair(const TlsFiles& files, const TlsMaterial& material) {
  LOCKSTEP_ASSIGN_OR_RETURN(
      const Certificate certificate,
      FirstCertificate(files.certificate, material.certificate));
  const Bio bio = Reader(material.key);
  const PrivateKey key(
      PEM_read_bio_PrivateKey(bio.get(), nullptr, NoPassword, nullptr));
  if (key == nullptr) {
    return Refuse(files.key,
                  "which holds no PEM private key without a password");
  }
  if (X509_check_private_key(certificate.get(), key.get()) != 1) {
    return Refuse(files.key,
                  absl::StrCat("which is not the key of the certificate of --",
                               files.certificate.flag));
  }
  return CheckTime(files.certificate, *certificate);
}

absl::Status Check(const TlsFiles& files, const TlsMaterial& material) {
  if (!files.certificate.path.empty()) {
    LOCKSTEP_RETURN_IF_ERROR(CheckPair(files, material));
  }
  if (files.ca.path.empty()) return absl::OkStatus();
  return FirstCertificate(files.ca, material.ca).status();
}

}  // namespace

absl::StatusOr<std::unique_ptr<TlsIdentity>> TlsIdentity::Start(
    const TlsFiles& files, absl::Duration every) {
  std::unique_ptr<TlsIdentity> identity(new TlsIdentity(files));
  std::vector<NamedFile> read;
  for (const NamedFile& file : {files.certificate, files.key, files.ca}) {
    if (!file.path.empty()) read.push_back(file);
  }
  LOCKSTEP_ASSIGN_OR_RETURN(
      identity->watch_,
      FileWatch::Start(
          std::move(read),
          [identity = identity.get()](const FileWatch::Contents& contents) {
            return identity->Take(contents);
          },
          every));
  return identity;
}

std::shared_ptr<const TlsMaterial> TlsIdentity::Current() const {
  absl::MutexLock lock(&mutex_);
  return current_;
}

absl::Status TlsIdentity::Take(const FileWatch::Contents& contents) {
  auto material = std::make_shared<TlsMaterial>();
  size_t next = 0;
  const auto take = [&](const NamedFile& file) {
    return file.path.empty() ? std::string() : contents[next++];
  };
  material->certificate = take(files_.certificate);
  material->key = take(files_.key);
  material->ca = take(files_.ca);
  LOCKSTEP_RETURN_IF_ERROR(Check(files_, *material));
  absl::MutexLock lock(&mutex_);
  current_ = std::move(material);
  return absl::OkStatus();
}

}  // namespace lockstep
