#pragma once

#include <openssl/ssl.h>

#include <memory>
#include <string>

#include "tests/testing/http/raw_connection.h"
#include "tests/testing/tls/test_ca.h"

namespace lockstep::testing {

// What a client shows and wants to see.
struct TlsWish {
  std::string ca = {};    // PEM; empty: any server will do
  Issued own = {};        // empty: no certificate
  std::string alpn = {};  // one protocol; empty: none
  int most_version = TLS1_3_VERSION;
};

// RawConnection over TLS.
//
//   TlsConnection client(port, {.ca = ca.certificate()});
//   ASSERT_EQ(client.error(), "");
//   client.Send("GET / HTTP/1.1\r\nhost: x\r\n\r\n");
class TlsConnection : public RawConnection {
 public:
  // Shakes hands, or says in error() why not. A server that wants a certificate
  // may refuse only at the first read: TLS 1.3.
  TlsConnection(int port, const TlsWish& wish);

  const std::string& error() const { return error_; }
  std::string version() const { return SSL_get_version(ssl_.get()); }
  std::string alpn() const;
  // The name in the server's certificate.
  std::string server_name() const;

 private:
  long SendSome(absl::string_view bytes) override;
  long ReceiveSome(char* to, size_t size) override;

  std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context_;
  std::unique_ptr<SSL, decltype(&SSL_free)> ssl_;
  std::string error_;
};

}  // namespace lockstep::testing
