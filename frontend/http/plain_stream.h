#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <memory>

#include "frontend/http/byte_stream.h"

namespace lockstep::http {

// The socket's own bytes. The socket does not block.
std::unique_ptr<ByteStream> MakePlainStream(
    boost::asio::ip::tcp::socket socket);

}  // namespace lockstep::http
