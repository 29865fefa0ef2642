#include "tests/testing/hub/fake_hub.h"

#include <absl/algorithm/container.h>
#include <absl/strings/match.h>
#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_replace.h>
#include <absl/strings/strip.h>

#include <cstddef>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "hub/content_hash.h"

namespace lockstep::testing {
namespace {

constexpr char kListings[] = "/api/models/";
constexpr char kResolve[] = "/resolve/";

std::string EtagOf(const FakeHub::File& file) {
  if (!file.etag.empty()) return file.etag;
  const size_t digits = file.large ? 64 : 40;
  auto hash = ContentHash::Like(std::string(digits, '0'), file.content.size());
  hash->Add(file.content);
  return hash->Finish();
}

int64_t SizeOf(const FakeHub::File& file) {
  return file.size >= 0 ? file.size : static_cast<int64_t>(file.content.size());
}

HttpListener::Answer Refusal(int status, const std::string& code) {
  return {.status = status, .fields = {{"x-error-code", code}}, .body = code};
}

// Those that a model's rules make, for who asks with `authorization`.
std::optional<HttpListener::Answer> AccessRefusal(
    const FakeHub::Model& model, const std::string& authorization) {
  if (model.token.empty() || authorization == "Bearer " + model.token) {
    return std::nullopt;
  }
  const bool has_token = !authorization.empty();
  if (model.gated) return Refusal(has_token ? 403 : 401, "GatedRepo");
  return Refusal(has_token ? 404 : 401, "RepoNotFound");
}

}  // namespace

FakeHub::FakeHub()
    : other_([this](const Request& request) { return Elsewhere(request); }),
      hub_([this](const Request& request) { return AtHub(request); }) {}

void FakeHub::SetModel(const std::string& repo, Model model) {
  absl::MutexLock lock(&mutex_);
  models_[repo] = std::move(model);
}

void FakeHub::CutBodies(int64_t after_bytes, int times) {
  absl::MutexLock lock(&mutex_);
  cut_after_bytes_ = after_bytes;
  cuts_ = times;
}

void FakeHub::RefuseRequests(int status, int times, int passing) {
  absl::MutexLock lock(&mutex_);
  refused_status_ = status;
  refusals_ = times;
  passing_ = passing;
}

void FakeHub::SetTakesRanges(bool takes_ranges) {
  absl::MutexLock lock(&mutex_);
  takes_ranges_ = takes_ranges;
}

std::vector<FakeHub::Seen> FakeHub::seen() const {
  absl::MutexLock lock(&mutex_);
  return seen_;
}

int FakeHub::NumReads(absl::string_view name) const {
  absl::MutexLock lock(&mutex_);
  return absl::c_count_if(seen_, [name](const Seen& request) {
    return request.method == "GET" && !request.elsewhere &&
           absl::EndsWith(request.target, absl::StrCat("/", name));
  });
}

FakeHub::Answer FakeHub::AtHub(const Request& request) {
  absl::MutexLock lock(&mutex_);
  seen_.push_back({request, /*elsewhere=*/false});
  if (refusals_ > 0 && --passing_ < 0) {
    --refusals_;
    return {.status = refused_status_};
  }
  absl::string_view target = request.target;
  const bool lists = absl::ConsumePrefix(&target, kListings);
  const std::string separator = lists ? "/revision/" : kResolve;
  if (!lists) absl::ConsumePrefix(&target, "/");
  const size_t end = target.find(separator);
  if (end == target.npos) return {.status = 404};
  const auto model = models_.find(std::string(target.substr(0, end)));
  if (model == models_.end()) return Refusal(401, "RepoNotFound");
  if (auto refusal = AccessRefusal(model->second, request.authorization)) {
    return *std::move(refusal);
  }
  const absl::string_view rest = target.substr(end + separator.size());
  return lists ? Listing(model->first, model->second, std::string(rest))
               : Resolve(request, model->second, rest);
}

FakeHub::Answer FakeHub::Listing(const std::string& repo, const Model& model,
                                 const std::string& revision) const {
  const std::string unquoted = absl::StrReplaceAll(revision, {{"%2F", "/"}});
  if (unquoted != model.commit &&
      !absl::c_linear_search(model.revisions, unquoted)) {
    return Refusal(404, "RevisionNotFound");
  }
  nlohmann::json siblings = nlohmann::json::array();
  for (const auto& [name, file] : model.files) {
    siblings.push_back({{"rfilename", name}});
  }
  const nlohmann::json listing = {
      {"id", repo}, {"sha", model.commit}, {"siblings", std::move(siblings)}};
  return {.body = listing.dump()};
}

FakeHub::Answer FakeHub::Resolve(const Request& request, const Model& model,
                                 absl::string_view revision_and_name) {
  absl::string_view name = revision_and_name;
  const bool known =
      absl::ConsumePrefix(&name, model.commit + "/") ||
      absl::c_any_of(model.revisions, [&name](const std::string& revision) {
        return absl::ConsumePrefix(&name, revision + "/");
      });
  if (!known) return Refusal(404, "RevisionNotFound");
  const auto found = model.files.find(std::string(name));
  if (found == model.files.end()) return Refusal(404, "EntryNotFound");
  const File& file = found->second;
  const std::string quoted = absl::StrCat("\"", EtagOf(file), "\"");
  if (!file.large) {
    Answer answer = Body(request, file);
    answer.fields["etag"] = quoted;
    answer.fields["x-repo-commit"] = model.commit;
    return answer;
  }
  const std::string target = absl::StrCat("/", EtagOf(file));
  elsewhere_[target] = file;
  return {.status = 302,
          .fields = {{"location", other_.url() + target},
                     {"x-repo-commit", model.commit},
                     {"x-linked-etag", quoted},
                     {"x-linked-size", absl::StrCat(SizeOf(file))}}};
}

FakeHub::Answer FakeHub::Elsewhere(const Request& request) {
  absl::MutexLock lock(&mutex_);
  seen_.push_back({request, /*elsewhere=*/true});
  const auto file = elsewhere_.find(request.target);
  if (file == elsewhere_.end()) return {.status = 404};
  return Body(request, file->second);
}

FakeHub::Answer FakeHub::Body(const Request& request, const File& file) {
  Answer answer = {.body = file.content};
  absl::string_view range = request.range;
  size_t first = 0;
  if (takes_ranges_ && absl::ConsumePrefix(&range, "bytes=") &&
      absl::SimpleAtoi(absl::StripSuffix(range, "-"), &first) &&
      first < file.content.size()) {
    answer.status = 206;
    answer.body = file.content.substr(first);
    answer.fields["content-range"] =
        absl::StrCat("bytes ", first, "-", file.content.size() - 1, "/",
                     file.content.size());
  }
  if (request.method == "GET" && cuts_ > 0) {
    --cuts_;
    answer.cut_after_bytes = cut_after_bytes_;
  }
  return answer;
}

}  // namespace lockstep::testing
