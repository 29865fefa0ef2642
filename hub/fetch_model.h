#pragma once

#include <absl/status/statusor.h>
#include <absl/time/time.h>

#include <functional>
#include <string>

#include "hub/hub_settings.h"
#include "hub/wanted_files.h"

namespace lockstep {

struct FetchOptions {
  ModelPart part = ModelPart::kAll;
  // Told what is going on, in a few words; may be null. By any thread, perhaps
  // by two at once.
  std::function<void(const std::string&)> tell = nullptr;
  absl::Duration tell_every = absl::Seconds(10);
  absl::Duration retry_wait = absl::Seconds(1);
};

// The path of a model: `model` itself where it is a path, else that of the
// hub's model which it names, in the cache that Hugging Face's programs use
// (see HubCache). What is not there is downloaded, several files at a time, and
// the hashes are compared; a process that downloads the same waits for this
// one.
//
//   LOCKSTEP_ASSIGN_OR_RETURN(
//       const std::string path,
//       FetchModel("owner/name", HubSettingsFromEnvironment(), {}));
//
// The hub is asked each time which commit a branch is. Offline, or while it can
// not be reached, the commit last known is used, if its files are there.
//
// Blocks for as long as a download takes: before a rank meets others. The error
// is one sentence that says what to set or to do.
absl::StatusOr<std::string> FetchModel(const std::string& model,
                                       const HubSettings& settings,
                                       const FetchOptions& options);

}  // namespace lockstep
