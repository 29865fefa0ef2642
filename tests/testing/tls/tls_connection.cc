#include "tests/testing/tls/tls_connection.h"

#include <glog/logging.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>

#include <csignal>

namespace lockstep::testing {
namespace {

BIO* Reader(const std::string& pem) {
  return BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size()));
}

X509* ReadCertificate(const std::string& pem) {
  BIO* const bio = Reader(pem);
  X509* const certificate = PEM_read_bio_X509(bio, nullptr, nullptr, nullptr);
  BIO_free(bio);
  CHECK(certificate != nullptr);
  return certificate;
}

void Trust(const std::string& ca, SSL_CTX* context) {
  X509* const certificate = ReadCertificate(ca);
  X509_STORE_add_cert(SSL_CTX_get_cert_store(context), certificate);
  X509_free(certificate);
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nullptr);
}

void Show(const Issued& own, SSL_CTX* context) {
  X509* const certificate = ReadCertificate(own.certificate);
  BIO* const bio = Reader(own.key);
  EVP_PKEY* const key = PEM_read_bio_PrivateKey(bio, nullptr, nullptr, nullptr);
  BIO_free(bio);
  CHECK_EQ(SSL_CTX_use_certificate(context, certificate), 1);
  CHECK_EQ(SSL_CTX_use_PrivateKey(context, key), 1);
  X509_free(certificate);
  EVP_PKEY_free(key);
}

}  // namespace

TlsConnection::TlsConnection(int port, const TlsWish& wish)
    : RawConnection(port),
      context_(SSL_CTX_new(TLS_client_method()), SSL_CTX_free),
      ssl_(nullptr, SSL_free) {
  std::signal(SIGPIPE, SIG_IGN);  // OpenSSL writes to what may be closed
  SSL_CTX_set_max_proto_version(context_.get(), wish.most_version);
  // What is too old for us must be refused by the other end.
  SSL_CTX_set_min_proto_version(context_.get(), TLS1_VERSION);
  SSL_CTX_set_security_level(context_.get(), 0);
  if (!wish.ca.empty()) Trust(wish.ca, context_.get());
  if (!wish.own.key.empty()) Show(wish.own, context_.get());
  ssl_.reset(SSL_new(context_.get()));
  if (!wish.alpn.empty()) {
    const std::string list = static_cast<char>(wish.alpn.size()) + wish.alpn;
    SSL_set_alpn_protos(ssl_.get(),
                        reinterpret_cast<const unsigned char*>(list.data()),
                        static_cast<unsigned>(list.size()));
  }
  SSL_set_fd(ssl_.get(), fd());
  ERR_clear_error();
  if (SSL_connect(ssl_.get()) == 1) return;
  const char* reason = ERR_reason_error_string(ERR_peek_error());
  error_ = reason == nullptr ? "the connection ended" : reason;
}

std::string TlsConnection::alpn() const {
  const unsigned char* name = nullptr;
  unsigned size = 0;
  SSL_get0_alpn_selected(ssl_.get(), &name, &size);
  return {reinterpret_cast<const char*>(name), size};
}

std::string TlsConnection::server_name() const {
  X509* const certificate = SSL_get0_peer_certificate(ssl_.get());
  CHECK(certificate != nullptr);
  char name[256] = "";
  X509_NAME_get_text_by_NID(X509_get_subject_name(certificate), NID_commonName,
                            name, sizeof(name));
  return name;
}

long TlsConnection::SendSome(absl::string_view bytes) {
  return SSL_write(ssl_.get(), bytes.data(), static_cast<int>(bytes.size()));
}

long TlsConnection::ReceiveSome(char* to, size_t size) {
  const int got = SSL_read(ssl_.get(), to, static_cast<int>(size));
  return got > 0 ? got : 0;  // whatever ended it
}

}  // namespace lockstep::testing
