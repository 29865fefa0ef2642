// The models on this machine, and how others get there:
//
//   models [--folder=FOLDER]     lists those of the hub's cache, and of a
//   folder models fetch MODEL           downloads one, and prints its path

#include <absl/status/status.h>
#include <absl/strings/str_cat.h>
#include <absl/time/time.h>
#include <gflags/gflags.h>
#include <glog/logging.h>
#include <unistd.h>

#include <cstdio>
#include <string>
#include <vector>

#include "common/environment_flags.h"
#include "common/status_macros.h"
#include "hub/cached_models.h"
#include "hub/fetch_model.h"
#include "hub/hub_settings.h"
#include "tools/models/model_list.h"
#include "worker/runtime/host_limits.h"

DEFINE_string(folder, "", "A folder with more models.");

namespace lockstep {
namespace {

absl::Status Fetch(const std::string& model) {
  const bool on_terminal = isatty(STDERR_FILENO) == 1;
  FetchOptions options;
  options.tell_every = absl::Seconds(on_terminal ? 1 : 10);
  options.tell = [on_terminal](const std::string& progress) {
    // Over the line before.
    std::fprintf(stderr, on_terminal ? "\r\x1b[K%s" : "%s\n", progress.c_str());
  };
  const auto path = FetchModel(model, HubSettingsFromEnvironment(), options);
  if (on_terminal) std::fputs("\r\x1b[K", stderr);
  LOCKSTEP_RETURN_IF_ERROR(path.status());
  if (access(path->c_str(), F_OK) != 0) {
    return absl::NotFoundError(
        absl::StrCat("there is no file or folder ", *path,
                     ", and a hub's model is named owner/name."));
  }
  std::printf("%s\n", path->c_str());
  return absl::OkStatus();
}

absl::Status List() {
  const HubSettings settings = HubSettingsFromEnvironment();
  std::vector<LocalModel> models = CachedModels(settings.cache);
  for (LocalModel& model : ModelsIn(FLAGS_folder)) {
    models.push_back(std::move(model));
  }
  if (models.empty()) {
    std::printf(
        "There are no models in %s; ./lockstep models fetch "
        "OWNER/NAME brings one.\n",
        settings.cache.c_str());
    return absl::OkStatus();
  }
  std::fputs(ModelTable(models, UsableMemoryBytes()).c_str(), stdout);
  return absl::OkStatus();
}

absl::Status Run(int argc, char** argv) {
  const bool fetches = argc > 2 && std::string(argv[1]) == "fetch";
  const std::string model = fetches ? argv[2] : "";
  if (fetches) {
    argv[2] = argv[0];
    argv += 2;
    argc -= 2;
  }
  LOCKSTEP_RETURN_IF_ERROR(ParseFlags(argc, argv));
  return fetches ? Fetch(model) : List();
}

}  // namespace
}  // namespace lockstep

int main(int argc, char** argv) {
  google::InitGoogleLogging(argv[0]);
  FLAGS_logtostderr = true;
  gflags::SetUsageMessage("the models on this machine: [fetch MODEL]");
  const absl::Status status = lockstep::Run(argc, argv);
  if (status.ok()) return 0;
  std::fprintf(stderr, "models: %s\n", std::string(status.message()).c_str());
  return 1;
}
