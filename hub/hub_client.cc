#include "hub/hub_client.h"

#include <absl/strings/ascii.h>
#include <absl/strings/escaping.h>
#include <absl/strings/match.h>
#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/strip.h>

#include <utility>

#include "common/status_macros.h"
#include "hub/content_hash.h"

namespace lockstep {
namespace {

constexpr int kMostRedirects = 5;

// Fields of the hub's replies, as huggingface_hub reads them.
constexpr char kErrorCode[] = "x-error-code";
constexpr char kLinkedEtag[] = "x-linked-etag";
constexpr char kLinkedSize[] = "x-linked-size";

// As a part of a URL's path; `kept` characters stay.
std::string Quote(absl::string_view text, absl::string_view kept) {
  std::string quoted;
  for (const char c : text) {
    if (absl::ascii_isalnum(c) || absl::StrContains("-._~", c) ||
        absl::StrContains(kept, c)) {
      quoted.push_back(c);
    } else {
      absl::StrAppend(&quoted, "%",
                      absl::AsciiStrToUpper(
                          absl::BytesToHexString(absl::string_view(&c, 1))));
    }
  }
  return quoted;
}

bool IsRedirect(const HttpReply& reply) {
  return reply.status >= 300 && reply.status < 400 && !reply.location.empty();
}

// What may pass.
bool IsOverloaded(int status) { return status == 429 || status >= 500; }

// W/"abc" names what "abc" does.
std::string Unquoted(absl::string_view etag) {
  absl::ConsumePrefix(&etag, "W/");
  if (absl::ConsumePrefix(&etag, "\"")) absl::ConsumeSuffix(&etag, "\"");
  return absl::AsciiStrToLower(etag);
}

absl::StatusOr<HubFile> FileOf(const HttpReply& reply, const std::string& name,
                               const std::string& url) {
  const bool is_linked = !reply.Field(kLinkedEtag).empty();
  HubFile file;
  file.name = name;
  file.etag = Unquoted(reply.Field(is_linked ? kLinkedEtag : "etag"));
  const std::string& size =
      reply.Field(is_linked ? kLinkedSize : "content-length");
  if (!absl::SimpleAtoi(size, &file.size) || file.size < 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        url, " is of no size: the hub says \"", absl::CHexEscape(size), "\"."));
  }
  if (ContentHash::Like(file.etag, file.size).has_value()) return file;
  return absl::InvalidArgumentError(absl::StrCat(
      url, " can not be checked: its ETag is \"", absl::CHexEscape(file.etag),
      "\", expected a SHA-256 or git's SHA-1."));
}

}  // namespace

bool HubClient::IsAtHub(const std::string& url) const {
  return absl::StartsWith(url, settings_.endpoint + "/");
}

std::string HubClient::UrlOf(const HubModel& file) const {
  return absl::StrCat(settings_.endpoint, "/", file.repo, "/resolve/",
                      Quote(file.revision, ""), "/", Quote(file.file, "/"));
}

absl::Status HubClient::Refusal(const HttpReply& reply, const HubModel& asked,
                                const std::string& url) const {
  const std::string page = absl::StrCat(settings_.endpoint, "/", asked.repo);
  const std::string& code = reply.Field(kErrorCode);
  // A place that the hub redirects to is one for a while.
  if (IsOverloaded(reply.status) || !IsAtHub(url)) {
    return absl::UnavailableError(
        absl::StrCat(url, " answers with the status ", reply.status, "."));
  }
  if (code == "RevisionNotFound") {
    return absl::NotFoundError(
        absl::StrCat(page, " has no revision ", asked.revision, "."));
  }
  if (code == "EntryNotFound") {
    return absl::NotFoundError(absl::StrCat(page, " has no file ", asked.file,
                                            " in ", asked.revision, "."));
  }
  const std::string token =
      settings_.token.empty()
          ? "set HF_TOKEN to the token of an account that may read it"
          : "the account of the token given (HF_TOKEN) may not read it";
  // The hub does not tell strangers what is private from what is not there.
  if (code == "RepoNotFound" || reply.status == 404) {
    return absl::NotFoundError(absl::StrCat(
        "there is no model ", page, "; or it is private, and ", token, "."));
  }
  if (reply.status == 401 || reply.status == 403) {
    return absl::PermissionDeniedError(absl::StrCat(
        "the model ", asked.repo, " is gated or private: accept its terms at ",
        page, "; ", token, "."));
  }
  return absl::FailedPreconditionError(
      absl::StrCat(url, " answers with the status ", reply.status, "."));
}

absl::StatusOr<HttpReply> HubClient::Follow(HttpClient::Request request,
                                            const HubModel& asked) {
  for (int i = 0; i <= kMostRedirects; ++i) {
    request.token = IsAtHub(request.url) ? settings_.token : "";
    LOCKSTEP_ASSIGN_OR_RETURN(HttpReply reply, http_.Ask(request));
    // Where a file is elsewhere, what the hub says of it counts.
    const bool describes = request.head && !reply.Field(kLinkedEtag).empty();
    if (describes || (reply.status >= 200 && reply.status < 300)) return reply;
    if (!IsRedirect(reply)) return Refusal(reply, asked, request.url);
    request.url = reply.location;
  }
  return absl::FailedPreconditionError(absl::StrCat(
      request.url, " redirects more than ", kMostRedirects, " times."));
}

absl::StatusOr<RepoFiles> HubClient::List(const HubModel& model) {
  const std::string url =
      absl::StrCat(settings_.endpoint, "/api/models/", model.repo, "/revision/",
                   Quote(model.revision, ""));
  LOCKSTEP_ASSIGN_OR_RETURN(const HttpReply reply, Follow({.url = url}, model));
  return ParseRepoFiles(reply.body, url);
}

absl::StatusOr<HubFile> HubClient::Describe(const HubModel& file) {
  const std::string url = UrlOf(file);
  LOCKSTEP_ASSIGN_OR_RETURN(const HttpReply reply,
                            Follow({.url = url, .head = true}, file));
  return FileOf(reply, file.file, url);
}

absl::Status HubClient::Read(const HubModel& file, int64_t first_byte,
                             const HttpClient::Sink& sink) {
  return Follow({.url = UrlOf(file), .first_byte = first_byte, .sink = sink},
                file)
      .status();
}

}  // namespace lockstep
