#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <memory>
#include <string>
#include <vector>

#include "bench/load/transport.h"

namespace lockstep::bench {

// OpenAI's API: POST /v1/completions with token ids for a prompt, streamed. As
// many connections as there are requests at a time; one is used again when it
// has been answered.
class HttpTransport : public Transport {
 public:
  // `target` is host:port, `api_key` empty where none is asked for. The host is
  // looked up with the first request.
  HttpTransport(std::string target, std::string api_key);
  ~HttpTransport() override;

  void Start(const Prompt& prompt, Listener* listener) override;
  void HandleOne(Clock::time_point deadline) override;

 private:
  class Exchange;
  using Socket = boost::asio::ip::tcp::socket;

  const std::string target_;
  const std::string api_key_;
  boost::asio::io_context context_;
  boost::asio::ip::tcp::resolver::results_type endpoints_;
  std::vector<std::unique_ptr<Socket>> idle_;
};

}  // namespace lockstep::bench
