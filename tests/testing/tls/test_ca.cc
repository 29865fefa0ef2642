#include "tests/testing/tls/test_ca.h"

#include <absl/strings/str_cat.h>
#include <glog/logging.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <random>

namespace lockstep::testing {
namespace {

constexpr long kDaySeconds = 24 * 60 * 60;

template <typename Write>
std::string ToPem(const Write& write) {
  BIO* const bio = BIO_new(BIO_s_mem());
  CHECK_EQ(write(bio), 1);
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio, &data);
  std::string pem(data, static_cast<size_t>(size));
  BIO_free(bio);
  return pem;
}

std::string CertificatePem(X509* certificate) {
  return ToPem([=](BIO* bio) { return PEM_write_bio_X509(bio, certificate); });
}

void AddExtension(X509* certificate, int id, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, certificate, certificate, nullptr, nullptr, 0);
  X509_EXTENSION* const extension =
      X509V3_EXT_conf_nid(nullptr, &context, id, value.c_str());
  CHECK(extension != nullptr) << value;
  CHECK_EQ(X509_add_ext(certificate, extension, -1), 1);
  X509_EXTENSION_free(extension);
}

}  // namespace

TestCa::TestCa(const std::string& name)
    : key_(MakeKey()), own_(nullptr, X509_free) {
  own_ = Sign({.name = name}, key_.get(), /*is_authority=*/true);
  certificate_ = CertificatePem(own_.get());
}

Issued TestCa::Issue(const Wish& wish) const {
  const Key key = MakeKey();
  const Certificate certificate = Sign(wish, key.get(), /*is_authority=*/false);
  return {CertificatePem(certificate.get()), ToPem([&](BIO* bio) {
            return PEM_write_bio_PrivateKey(bio, key.get(), nullptr, nullptr, 0,
                                            nullptr, nullptr);
          })};
}

TestCa::Key TestCa::MakeKey() {
  Key key(EVP_EC_gen("P-256"), EVP_PKEY_free);
  CHECK(key != nullptr);
  return key;
}

TestCa::Certificate TestCa::Sign(const Wish& wish, EVP_PKEY* subject_key,
                                 bool is_authority) const {
  Certificate certificate(X509_new(), X509_free);
  X509* const x509 = certificate.get();
  X509_set_version(x509, X509_VERSION_3);
  std::random_device random;
  ASN1_INTEGER_set(X509_get_serialNumber(x509), random() >> 1);
  X509_gmtime_adj(X509_getm_notBefore(x509), wish.from * kDaySeconds);
  X509_gmtime_adj(X509_getm_notAfter(x509), wish.until * kDaySeconds);
  X509_NAME* const name = X509_get_subject_name(x509);
  X509_NAME_add_entry_by_txt(
      name, "CN", MBSTRING_UTF8,
      reinterpret_cast<const unsigned char*>(wish.name.c_str()), -1, -1, 0);
  X509_set_issuer_name(x509,
                       is_authority ? name : X509_get_subject_name(own_.get()));
  X509_set_pubkey(x509, subject_key);
  AddExtension(x509, NID_basic_constraints,
               is_authority ? "critical,CA:TRUE" : "critical,CA:FALSE");
  if (!is_authority) {
    AddExtension(x509, NID_subject_alt_name,
                 absl::StrCat("DNS:", wish.name, ",IP:127.0.0.1"));
  }
  CHECK_GT(X509_sign(x509, key_.get(), EVP_sha256()), 0);
  return certificate;
}

}  // namespace lockstep::testing
