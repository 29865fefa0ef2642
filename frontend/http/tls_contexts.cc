#include "frontend/http/tls_contexts.h"

#include <absl/strings/string_view.h>
#include <glog/logging.h>

#include <boost/asio/buffer.hpp>
#include <boost/asio/ssl/context.hpp>
#include <string>
#include <utility>

namespace lockstep::http {
namespace {

namespace ssl = boost::asio::ssl;

// Of TLS 1.2; all of 1.3's are as good.
constexpr char kCiphers[] = "ECDHE+AESGCM:ECDHE+CHACHA20";
// Each with its length before it (RFC 7301, section 3.1).
constexpr absl::string_view kProtocols("\x08http/1.1\x08http/1.0");
constexpr absl::string_view kSessionsOf = "lockstep";

int SelectProtocol(SSL*, const unsigned char** chosen, unsigned char* size,
                   const unsigned char* offered, unsigned int offered_size,
                   void*) {
  const int found = SSL_select_next_proto(
      const_cast<unsigned char**>(chosen), size,
      reinterpret_cast<const unsigned char*>(kProtocols.data()),
      kProtocols.size(), offered, offered_size);
  // A client of HTTP/2 alone learns it here, not by garbage.
  return found == OPENSSL_NPN_NEGOTIATED ? SSL_TLSEXT_ERR_OK
                                         : SSL_TLSEXT_ERR_ALERT_FATAL;
}

// The identity has found it good.
void Use(const TlsMaterial& material, ssl::context* context) {
  const auto use = [](const std::string& pem) {
    return boost::asio::buffer(pem);
  };
  boost::system::error_code failure;
  context->use_certificate_chain(use(material.certificate), failure);
  CHECK(!failure) << failure.message();
  context->use_private_key(use(material.key), ssl::context::pem, failure);
  CHECK(!failure) << failure.message();
  if (material.ca.empty()) return;
  context->add_certificate_authority(use(material.ca), failure);
  CHECK(!failure) << failure.message();
  SSL_CTX_set_verify(context->native_handle(),
                     SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT,
                     nullptr);
}

std::shared_ptr<SSL_CTX> MakeContext(const TlsMaterial& material) {
  auto owner = std::make_shared<ssl::context>(ssl::context::tls_server);
  SSL_CTX* const context = owner->native_handle();
  CHECK_EQ(SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION), 1);
  CHECK_EQ(SSL_CTX_set_cipher_list(context, kCiphers), 1);
  SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION |
                                   SSL_OP_CIPHER_SERVER_PREFERENCE);
  // Writes go on where they stopped; an idle connection holds no buffers.
  SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE |
                                SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                SSL_MODE_RELEASE_BUFFERS);
  SSL_CTX_set_alpn_select_cb(context, SelectProtocol, nullptr);
  SSL_CTX_set_session_id_context(
      context, reinterpret_cast<const unsigned char*>(kSessionsOf.data()),
      kSessionsOf.size());
  Use(material, owner.get());
  return {owner, context};
}

}  // namespace

std::shared_ptr<SSL_CTX> TlsContexts::Current() {
  std::shared_ptr<const TlsMaterial> material = identity_->Current();
  absl::MutexLock lock(&mutex_);
  if (material != used_) {
    context_ = MakeContext(*material);
    used_ = std::move(material);
  }
  return context_;
}

}  // namespace lockstep::http
