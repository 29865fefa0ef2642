#pragma once

#include <openssl/ssl.h>

#include <boost/asio/ip/tcp.hpp>
#include <memory>

#include "frontend/http/byte_stream.h"

namespace lockstep::http {

// The server's end of TLS over a socket that does not block. OpenSSL reads and
// writes the socket itself, when Asio says that it can: there are no buffers
// but OpenSSL's, which an idle connection gives back. A client that speaks
// HTTP without TLS is told so.
std::unique_ptr<ByteStream> MakeTlsStream(boost::asio::ip::tcp::socket socket,
                                          SSL_CTX* context);

}  // namespace lockstep::http
