#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <vector>

namespace lockstep::testing {

// An HTTP server on 127.0.0.1 for what no good server does: it says what it is
// told to, true or not.
//
//   HttpListener listener([](const HttpListener::Request& request) {
//     return HttpListener::Answer{.status = 404};
//   });
//
// One request a connection, each on a thread of its own, which `handler` is
// called on. The destructor joins them.
class HttpListener {
 public:
  struct Request {
    std::string method;
    std::string target;
    std::string authorization;
    std::string range;
  };

  struct Answer {
    int status = 200;
    std::map<std::string, std::string> fields = {};  // beside content-length
    std::string body = {};
    int64_t length = -1;           // said of the body; -1: the truth
    int64_t cut_after_bytes = -1;  // of the body; -1: none is cut
  };

  explicit HttpListener(std::function<Answer(const Request&)> handler);
  ~HttpListener();

  std::string url() const;  // "http://127.0.0.1:PORT"

 private:
  void Accept();
  void Serve(boost::asio::ip::tcp::socket socket);

  const std::function<Answer(const Request&)> handler_;
  boost::asio::io_context context_;
  boost::asio::ip::tcp::acceptor acceptor_;
  std::vector<std::thread> connections_;  // the accepting thread's
  std::thread thread_;
};

}  // namespace lockstep::testing
