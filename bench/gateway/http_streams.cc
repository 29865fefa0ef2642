#include <absl/strings/match.h>
#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/string_view.h>
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <deque>
#include <string>

#include "bench/gateway/streams.h"

namespace lockstep::bench {
namespace {

constexpr size_t kReadBytes = 64 << 10;
constexpr int kEventsAtOnce = 64;

// A connection to 127.0.0.1 on which one completion is streamed. What it reads
// is only counted: an event that has a finish_reason of null is a token.
class HttpStream {
 public:
  HttpStream(const std::string& target, const StreamsOptions& options,
             int index) {
    fd_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int port = 0;
    is_open_ = absl::SimpleAtoi(target.substr(target.rfind(':') + 1), &port);
    address.sin_port = htons(port);
    is_open_ = is_open_ && connect(fd_, reinterpret_cast<sockaddr*>(&address),
                                   sizeof(address)) == 0;
    const int on = 1;
    setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    // Each id of the prompt is text, so each token that echoes it is an event.
    const std::string body =
        absl::StrCat(R"({"model":"echo","stream":true,)",
                     R"("prompt":"one two three four five six seven eight",)",
                     R"("add_special_tokens":false,)", R"("max_tokens":)",
                     options.tokens, ",\"seed\":", index, "}");
    request_ = absl::StrCat(
        "POST /v1/completions HTTP/1.1\r\nhost: bench\r\n"
        "content-type: application/json\r\ncontent-length: ",
        body.size(), "\r\n\r\n", body);
  }
  ~HttpStream() { close(fd_); }
  HttpStream(const HttpStream&) = delete;
  HttpStream& operator=(const HttpStream&) = delete;

  int fd() const { return fd_; }
  bool is_open() const { return is_open_; }
  bool is_done() const { return is_done_; }

  void Ask() {
    is_open_ = is_open_ && send(fd_, request_.data(), request_.size(),
                                MSG_NOSIGNAL) == ssize_t(request_.size());
    fcntl(fd_, F_SETFL, O_NONBLOCK);
  }

  // Reads what has come; the tokens in it.
  size_t Read(std::array<char, kReadBytes>* scratch) {
    const ssize_t size = read(fd_, scratch->data(), scratch->size());
    if (size <= 0) {
      is_open_ = false;
      return 0;
    }
    rest_.append(scratch->data(), size);
    size_t tokens = 0, begin = 0;
    for (size_t end; (end = rest_.find("\n\n", begin)) != rest_.npos;
         begin = end + 2) {
      const absl::string_view event(rest_.data() + begin, end - begin);
      tokens += absl::StrContains(event, "\"finish_reason\":null");
      is_done_ = is_done_ || absl::StrContains(event, "[DONE]");
    }
    rest_.erase(0, begin);
    return tokens;
  }

 private:
  int fd_ = -1;
  bool is_open_ = false;
  bool is_done_ = false;
  std::string request_;
  std::string rest_;  // of an event that has not come whole
};

}  // namespace

absl::StatusOr<StreamsResult> StreamOverHttp(const StreamsOptions& options,
                                             const SentTimes& sent) {
  const int poll = epoll_create1(EPOLL_CLOEXEC);
  std::deque<HttpStream> streams;
  for (int i = 0; i < options.streams; ++i) {
    streams.emplace_back(options.target, options, i);
    epoll_event event = {.events = EPOLLIN, .data = {.u32 = uint32_t(i)}};
    epoll_ctl(poll, EPOLL_CTL_ADD, streams.back().fd(), &event);
  }
  StreamsRecorder recorder(options.streams);
  std::array<char, kReadBytes> scratch;
  std::array<epoll_event, kEventsAtOnce> events;
  const SteadyClock::time_point start = SteadyClock::now();
  absl::Status status;
  int asked = 0, done = 0;
  while (done < options.streams && status.ok()) {
    while (asked < options.streams &&
           SteadyClock::now() >= start + asked * options.stagger) {
      streams[asked++].Ask();
    }
    const int wait_ms = asked < options.streams ? 0 : -1;
    const int number = epoll_wait(poll, events.data(), kEventsAtOnce, wait_ms);
    for (int i = 0; i < number; ++i) {
      const uint32_t index = events[i].data.u32;
      HttpStream& stream = streams[index];
      if (stream.is_done()) continue;
      recorder.OnTokens(index, stream.Read(&scratch), sent);
      done += stream.is_done();
      if (!stream.is_done() && !stream.is_open()) {
        status = absl::UnavailableError(
            absl::StrCat("stream ", index, " from ", options.target, " broke"));
      }
    }
  }
  close(poll);
  if (!status.ok()) return status;
  return recorder.Take();
}

}  // namespace lockstep::bench
