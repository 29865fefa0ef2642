#include "bench/load/http_transport.h"

#include <absl/strings/str_cat.h>

#include <array>
#include <boost/asio/connect.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "bench/load/sse_reader.h"

namespace lockstep::bench {
namespace {

namespace beast = boost::beast;
namespace http = beast::http;
using boost::system::error_code;
using nlohmann::json;

std::string ToBody(const Prompt& prompt) {
  return json{{"prompt", prompt.ids},     {"max_tokens", prompt.output_tokens},
              {"temperature", 0},         {"ignore_eos", true},
              {"return_token_ids", true}, {"stream", true}}
      .dump();
}

// Of an error that comes in the midst of a stream: it has no HTTP status.
absl::StatusCode CodeOf(const json& error) {
  const std::string type = error.value("type", "");
  if (type == "rate_limit_error") return absl::StatusCode::kResourceExhausted;
  if (type == "invalid_request_error") {
    return absl::StatusCode::kInvalidArgument;
  }
  return absl::StatusCode::kUnavailable;
}

absl::StatusCode CodeOf(int http_status) {
  switch (http_status) {
    case 400:
      return absl::StatusCode::kInvalidArgument;
    case 401:
      return absl::StatusCode::kUnauthenticated;
    case 404:
      return absl::StatusCode::kNotFound;
    case 429:
      return absl::StatusCode::kResourceExhausted;
    case 503:
      return absl::StatusCode::kUnavailable;
    case 504:
      return absl::StatusCode::kDeadlineExceeded;
    default:
      return absl::StatusCode::kInternal;
  }
}

}  // namespace

// One request, with one operation in flight, which keeps it alive.
class HttpTransport::Exchange
    : public std::enable_shared_from_this<HttpTransport::Exchange> {
 public:
  Exchange(HttpTransport* transport, const Prompt& prompt, Listener* listener)
      : transport_(transport),
        listener_(listener),
        events_([this](absl::string_view data) { OnData(data); }) {
    request_.method(http::verb::post);
    request_.target("/v1/completions");
    request_.set(http::field::host, transport->target_);
    request_.set(http::field::content_type, "application/json");
    if (!transport->api_key_.empty()) {
      request_.set(http::field::authorization,
                   absl::StrCat("Bearer ", transport->api_key_));
    }
    request_.body() = ToBody(prompt);
    request_.prepare_payload();
  }

  void Begin() {
    if (transport_->idle_.empty()) return Connect();
    socket_ = std::move(transport_->idle_.back());
    transport_->idle_.pop_back();
    was_idle_ = true;
    Write();
  }

 private:
  void Connect() {
    was_idle_ = false;
    socket_ = std::make_unique<Socket>(transport_->context_);
    boost::asio::async_connect(
        *socket_, transport_->endpoints_,
        [self = shared_from_this()](error_code error, const auto&) {
          if (error) return self->Fail(error);
          self->socket_->set_option(boost::asio::ip::tcp::no_delay(true));
          self->Write();
        });
  }

  void Write() {
    http::async_write(*socket_, request_,
                      [self = shared_from_this()](error_code error, size_t) {
                        if (error) return self->Fail(error);
                        self->ReadHeader();
                      });
  }

  void ReadHeader() {
    response_.body_limit(std::numeric_limits<uint64_t>::max());
    http::async_read_header(
        *socket_, buffer_, response_,
        [self = shared_from_this()](error_code error, size_t) {
          if (error) return self->Fail(error);
          self->was_idle_ = false;
          self->ReadBody();
        });
  }

  void ReadBody() {
    if (response_.is_done()) return End();
    response_.get().body().data = bytes_.data();
    response_.get().body().size = bytes_.size();
    http::async_read_some(
        *socket_, buffer_, response_,
        [self = shared_from_this()](error_code error, size_t) {
          if (error && error != http::error::need_buffer) {
            return self->Fail(error);
          }
          self->OnBytes(bytes_of(*self));
          self->ReadBody();
        });
  }

  static absl::string_view bytes_of(const Exchange& self) {
    return {self.bytes_.data(),
            self.bytes_.size() - self.response_.get().body().size};
  }

  int http_status() const { return response_.get().result_int(); }

  void OnBytes(absl::string_view bytes) {
    if (http_status() == 200) {
      events_.Read(bytes);
    } else {
      absl::StrAppend(&error_body_, bytes);
    }
  }

  void OnData(absl::string_view data) {
    if (data == "[DONE]") return;
    const json event = json::parse(data, nullptr, /*allow_exceptions=*/false);
    if (event.is_object() && event.contains("error")) {
      error_ = absl::Status(CodeOf(event["error"]), data);
    }
    if (!event.is_object() || !event.contains("choices")) return;
    for (const json& choice : event["choices"]) {
      const auto ids = choice.value("token_ids", std::vector<uint32_t>());
      if (!ids.empty()) listener_->OnTokens(ids);
    }
  }

  void End() {
    if (http_status() != 200) {
      error_ = absl::Status(CodeOf(http_status()), error_body_);
    }
    if (response_.keep_alive()) {
      transport_->idle_.push_back(std::move(socket_));
    }
    listener_->OnEnd(error_);
  }

  void Fail(error_code error) {
    if (was_idle_) return Connect();
    listener_->OnEnd(absl::UnavailableError(
        absl::StrCat(transport_->target_, ": ", error.message())));
  }

  HttpTransport* const transport_;
  Listener* const listener_;
  std::unique_ptr<Socket> socket_;
  // It may have been closed meanwhile: until there is an answer, that is no
  // failure.
  bool was_idle_ = false;
  http::request<http::string_body> request_;
  beast::flat_buffer buffer_;
  http::response_parser<http::buffer_body> response_;
  std::array<char, 16'384> bytes_;
  SseReader events_;
  std::string error_body_;  // where the status is not 200
  absl::Status error_;
};

HttpTransport::HttpTransport(std::string target, std::string api_key)
    : target_(std::move(target)), api_key_(std::move(api_key)) {}

HttpTransport::~HttpTransport() = default;

void HttpTransport::Start(const Prompt& prompt, Listener* listener) {
  if (endpoints_.empty()) {
    const size_t colon = target_.rfind(':');
    error_code error;
    endpoints_ = boost::asio::ip::tcp::resolver(context_).resolve(
        target_.substr(0, colon), target_.substr(colon + 1), error);
    // Where there is none, connecting says so.
  }
  std::make_shared<Exchange>(this, prompt, listener)->Begin();
}

void HttpTransport::HandleOne(Clock::time_point deadline) {
  context_.restart();
  if (deadline == Clock::time_point::max()) {
    context_.run_one();
  } else {
    context_.run_one_until(deadline);
  }
}

}  // namespace lockstep::bench
