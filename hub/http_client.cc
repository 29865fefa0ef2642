#include "hub/http_client.h"

#include <absl/strings/ascii.h>
#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_split.h>
#include <absl/strings/strip.h>
#include <curl/curl.h>

#include <mutex>
#include <utility>

#include "common/program/version.h"

namespace lockstep {
namespace {

constexpr long kConnectTimeoutMs = 10'000;
// A transfer that has not brought a byte for so long has ended.
constexpr long kSilenceS = 30;
constexpr size_t kMostBodyBytes = 32 << 20;

// What a request's callbacks work on.
struct Transfer {
  const HttpClient::Request& request;
  HttpReply reply;
  absl::Status failure;  // of the sink
};

bool IsFile(const HttpReply& reply) {
  return reply.status == 200 || reply.status == 206;
}

// The lines of a head. One that begins a status begins another head, after one
// of a proxy or a "100 Continue".
size_t OnHeadLine(char* data, size_t size, size_t count, void* transfer) {
  HttpReply& reply = static_cast<Transfer*>(transfer)->reply;
  const absl::string_view line(data, size * count);
  if (absl::StartsWith(line, "HTTP/")) {
    reply.fields.clear();
    return line.size();
  }
  const size_t colon = line.find(':');
  if (colon != line.npos) {
    reply.fields[absl::AsciiStrToLower(line.substr(0, colon))] =
        std::string(absl::StripAsciiWhitespace(line.substr(colon + 1)));
  }
  return line.size();
}

struct BodyTarget {
  Transfer* transfer;
  CURL* curl;
};

size_t OnBody(char* data, size_t size, size_t count, void* target) {
  const auto [transfer, curl] = *static_cast<BodyTarget*>(target);
  const absl::string_view part(data, size * count);
  long status = 0;
  curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
  transfer->reply.status = static_cast<int>(status);
  if (transfer->request.sink != nullptr && IsFile(transfer->reply)) {
    transfer->failure = transfer->request.sink(transfer->reply, part);
  } else if (transfer->reply.body.size() + part.size() > kMostBodyBytes) {
    transfer->failure = absl::ResourceExhaustedError(
        absl::StrCat(transfer->request.url, " answers with more than ",
                     kMostBodyBytes, " bytes."));
  } else {
    transfer->reply.body.append(part.data(), part.size());
  }
  return transfer->failure.ok() ? part.size() : 0;
}

}  // namespace

struct HttpClient::Curl {
  CURL* handle = nullptr;
  char error[CURL_ERROR_SIZE] = {};

  template <typename T>
  void Set(CURLoption option, T value) {
    curl_easy_setopt(handle, option, value);
  }
  void Prepare(const Request& request, BodyTarget* target);
};

const std::string& HttpReply::Field(const std::string& name) const {
  static const std::string* const kNone = new std::string();
  const auto found = fields.find(name);
  return found == fields.end() ? *kNone : found->second;
}

HttpClient::HttpClient() : curl_(std::make_unique<Curl>()) {
  static std::once_flag once;
  std::call_once(once, [] { curl_global_init(CURL_GLOBAL_DEFAULT); });
  curl_->handle = curl_easy_init();
}

HttpClient::~HttpClient() { curl_easy_cleanup(curl_->handle); }

void HttpClient::Curl::Prepare(const Request& request, BodyTarget* target) {
  curl_easy_reset(handle);  // keeps the connections
  error[0] = '\0';
  Set(CURLOPT_ERRORBUFFER, error);
  Set(CURLOPT_URL, request.url.c_str());
  Set(CURLOPT_PROTOCOLS_STR, "http,https");
  Set(CURLOPT_USERAGENT, absl::StrCat("lockstep/", kVersion).c_str());
  Set(CURLOPT_NOSIGNAL, 1L);
  Set(CURLOPT_CONNECTTIMEOUT_MS, kConnectTimeoutMs);
  Set(CURLOPT_LOW_SPEED_LIMIT, 1L);
  Set(CURLOPT_LOW_SPEED_TIME, kSilenceS);
  Set(CURLOPT_NOBODY, request.head ? 1L : 0L);
  if (!request.token.empty()) {
    Set(CURLOPT_HTTPAUTH, CURLAUTH_BEARER);
    Set(CURLOPT_XOAUTH2_BEARER, request.token.c_str());
  }
  if (request.first_byte > 0) {
    Set(CURLOPT_RANGE, absl::StrCat(request.first_byte, "-").c_str());
  }
  Set(CURLOPT_HEADERFUNCTION, &OnHeadLine);
  Set(CURLOPT_HEADERDATA, target->transfer);
  Set(CURLOPT_WRITEFUNCTION, &OnBody);
  Set(CURLOPT_WRITEDATA, target);
}

absl::StatusOr<HttpReply> HttpClient::Ask(const Request& request) {
  if (curl_->handle == nullptr) {
    return absl::ResourceExhaustedError("no memory is left for libcurl.");
  }
  Transfer transfer = {.request = request, .reply = {}, .failure = {}};
  BodyTarget target = {.transfer = &transfer, .curl = curl_->handle};
  curl_->Prepare(request, &target);
  const CURLcode code = curl_easy_perform(curl_->handle);
  if (!transfer.failure.ok()) return transfer.failure;
  if (code != CURLE_OK) {
    const char* const what =
        curl_->error[0] != '\0' ? curl_->error : curl_easy_strerror(code);
    return absl::UnavailableError(absl::StrCat(request.url, ": ", what));
  }
  long status = 0;
  curl_easy_getinfo(curl_->handle, CURLINFO_RESPONSE_CODE, &status);
  transfer.reply.status = static_cast<int>(status);
  char* location = nullptr;
  curl_easy_getinfo(curl_->handle, CURLINFO_REDIRECT_URL, &location);
  if (location != nullptr) transfer.reply.location = location;
  return std::move(transfer.reply);
}

}  // namespace lockstep
