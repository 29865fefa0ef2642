#pragma once

#include <absl/base/thread_annotations.h>
#include <absl/synchronization/mutex.h>
#include <openssl/ssl.h>

#include <memory>

#include "common/security/tls_identity.h"

namespace lockstep::http {

// OpenSSL's settings for a server's handshakes, made anew when its identity
// changes: TLS 1.2 or later, ciphers with forward secrecy, http/1.1 by ALPN,
// and with a CA a client's certificate of it.
//
//   const std::shared_ptr<SSL_CTX> context = contexts.Current();
//
// Any thread. `identity` must outlive this.
class TlsContexts {
 public:
  explicit TlsContexts(const TlsIdentity* identity) : identity_(identity) {}

  std::shared_ptr<SSL_CTX> Current();

 private:
  const TlsIdentity* const identity_;
  absl::Mutex mutex_;
  std::shared_ptr<const TlsMaterial> used_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<SSL_CTX> context_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace lockstep::http
