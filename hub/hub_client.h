#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <cstdint>
#include <string>
#include <utility>

#include "hub/http_client.h"
#include "hub/hub_settings.h"
#include "hub/model_name.h"
#include "hub/repo_files.h"

namespace lockstep {

// A file as a hub describes it.
struct HubFile {
  std::string name;
  std::string etag;  // see ContentHash
  int64_t size = 0;
};

// Asks a hub, in its HTTP API: api/models/REPO/revision/REVISION lists files,
// REPO/resolve/COMMIT/FILE has one, perhaps at another host. The token goes to
// the hub alone.
//
// NOT_FOUND and PERMISSION_DENIED name the model, its page and the variable to
// set; UNAVAILABLE is for what may pass: no connection, an overloaded hub. One
// thread.
class HubClient {
 public:
  explicit HubClient(HubSettings settings) : settings_(std::move(settings)) {}

  absl::StatusOr<RepoFiles> List(const HubModel& model);

  // `file` says of which file, at which revision.
  absl::StatusOr<HubFile> Describe(const HubModel& file);

  // Gives the file's bytes to `sink`: from `first_byte` on where its reply has
  // the status 206, else from the beginning.
  absl::Status Read(const HubModel& file, int64_t first_byte,
                    const HttpClient::Sink& sink);

 private:
  bool IsAtHub(const std::string& url) const;
  std::string UrlOf(const HubModel& file) const;
  absl::StatusOr<HttpReply> Follow(HttpClient::Request request,
                                   const HubModel& asked);
  absl::Status Refusal(const HttpReply& reply, const HubModel& asked,
                       const std::string& url) const;

  const HubSettings settings_;
  HttpClient http_;
};

}  // namespace lockstep
