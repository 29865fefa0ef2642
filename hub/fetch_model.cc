#include "hub/fetch_model.h"

#include <absl/status/status.h>
#include <absl/strings/str_cat.h>
#include <absl/time/clock.h>
#include <glog/logging.h>
#include <pthread.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <atomic>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "common/status_macros.h"
#include "hub/blob_download.h"
#include "hub/download_progress.h"
#include "hub/hub_cache.h"
#include "hub/hub_client.h"
#include "hub/model_name.h"

namespace lockstep {
namespace {

constexpr size_t kMostDownloads = 4;  // at a time
constexpr int kMostDescriptions = 4;  // of a file, from an overloaded hub

// The model at one commit.
HubModel FileAt(const HubModel& model, const std::string& commit,
                const std::string& name) {
  return {.repo = model.repo, .revision = commit, .file = name};
}

std::string PathOf(const HubCache& cache, const HubModel& model,
                   const std::string& commit, const WantedFiles& wanted) {
  const std::string snapshot = cache.Snapshot(model.repo, commit);
  return wanted.entry.empty() ? snapshot
                              : absl::StrCat(snapshot, "/", wanted.entry);
}

// Without the hub; `why` says what it can not be asked for.
absl::StatusOr<std::string> FromCache(const HubCache& cache,
                                      const HubModel& model, ModelPart part,
                                      absl::string_view why) {
  const auto commit = cache.CommitOf(model.repo, model.revision);
  if (!commit.has_value()) {
    return absl::NotFoundError(absl::StrCat(model.ToString(), " is not in ",
                                            cache.folder(), ", and ", why));
  }
  const auto wanted =
      ChooseFiles(model, cache.FilesOf(model.repo, *commit), part);
  if (wanted.ok()) return PathOf(cache, model, *commit, *wanted);
  return absl::NotFoundError(absl::StrCat(
      "what ", cache.folder(), " has of ", model.ToString(), " is not enough (",
      wanted.status().message(), "), and ", why));
}

class Fetch {
 public:
  Fetch(const HubModel& model, const HubSettings& settings,
        const FetchOptions& options)
      : model_(model),
        settings_(settings),
        options_(options),
        cache_(settings.cache),
        hub_(settings) {}

  absl::StatusOr<std::string> Run() {
    if (settings_.offline) {
      return FromCache(cache_, model_, options_.part,
                       "HF_HUB_OFFLINE forbids to ask the hub for it.");
    }
    auto listing = hub_.List(model_);
    if (absl::IsUnavailable(listing.status())) {
      const std::string why(listing.status().message());
      auto path =
          FromCache(cache_, model_, options_.part,
                    absl::StrCat("the hub can not be asked for it: ", why));
      LOG_IF(WARNING, path.ok())
          << why << " " << *path << " is what it last was.";
      return path;
    }
    LOCKSTEP_RETURN_IF_ERROR(listing.status());
    commit_ = listing->commit;
    LOCKSTEP_ASSIGN_OR_RETURN(
        const WantedFiles wanted,
        ChooseFiles(model_, listing->names, options_.part));
    LOCKSTEP_RETURN_IF_ERROR(Bring(wanted.names));
    LOCKSTEP_RETURN_IF_ERROR(
        cache_.SetCommitOf(model_.repo, model_.revision, commit_));
    return PathOf(cache_, model_, commit_, wanted);
  }

 private:
  absl::Status Bring(const std::vector<std::string>& names) {
    std::vector<HubFile> missing;
    for (const std::string& name : names) {
      if (cache_.Has(model_.repo, commit_, name)) continue;
      LOCKSTEP_ASSIGN_OR_RETURN(missing.emplace_back(), Describe(name));
    }
    if (missing.empty()) return absl::OkStatus();
    // The largest take longest: they begin first.
    std::stable_sort(
        missing.begin(), missing.end(),
        [](const HubFile& a, const HubFile& b) { return a.size > b.size; });
    LOCKSTEP_RETURN_IF_ERROR(CheckSpace(missing));
    return Download(missing);
  }

  absl::StatusOr<HubFile> Describe(const std::string& name) {
    absl::Duration wait = options_.retry_wait;
    for (int attempt = 1;; ++attempt) {
      auto described = hub_.Describe(FileAt(model_, commit_, name));
      if (!absl::IsUnavailable(described.status()) ||
          attempt == kMostDescriptions) {
        return described;
      }
      absl::SleepFor(wait);
      wait *= 2;
    }
  }

  absl::Status CheckSpace(const std::vector<HubFile>& files) const {
    const std::string blobs = cache_.Blob(model_.repo, "");
    LOCKSTEP_RETURN_IF_ERROR(MakeFolderOf(blobs));
    int64_t needed = 0;
    for (const HubFile& file : files) {
      needed +=
          file.size -
          IncompleteBytes(cache_, FileAt(model_, commit_, file.name), file);
    }
    struct statvfs disk;
    if (statvfs(blobs.c_str(), &disk) != 0) return absl::OkStatus();
    const auto free = static_cast<int64_t>(disk.f_bavail * disk.f_frsize);
    if (needed <= free) return absl::OkStatus();
    return absl::ResourceExhaustedError(absl::StrCat(
        model_.ToString(), " takes ", ByteSizeText(needed), " more, and ",
        cache_.folder(), " has ", ByteSizeText(free),
        " left; make room, or set HF_HUB_CACHE or HF_HOME to a folder of ",
        "another disk."));
  }

  absl::Status Download(const std::vector<HubFile>& files) {
    int64_t bytes = 0;
    for (const HubFile& file : files) bytes += file.size;
    if (options_.tell != nullptr) {
      options_.tell(absl::StrCat(model_.ToString(), ": ", ByteSizeText(bytes),
                                 " from ", settings_.endpoint));
    }
    DownloadProgress progress(model_.ToString(), bytes, options_.tell,
                              options_.tell_every);
    std::atomic<bool> stop = false;
    std::atomic<size_t> next = 0;
    std::vector<absl::Status> statuses(std::min(kMostDownloads, files.size()),
                                       absl::OkStatus());
    const DownloadContext context = {.cache = cache_,
                                     .progress = progress,
                                     .stop = stop,
                                     .retry_wait = options_.retry_wait};
    const auto work = [&](absl::Status* status) {
      HubClient hub(settings_);
      for (size_t i = next++; i < files.size() && !stop; i = next++) {
        *status = BringOne(hub, files[i], context);
        if (!status->ok()) stop = true;
      }
    };
    std::vector<std::thread> threads;
    for (absl::Status& status : statuses) {
      threads.emplace_back(work, &status);
      pthread_setname_np(threads.back().native_handle(), "download");
    }
    for (std::thread& thread : threads) thread.join();
    return FirstCause(statuses);
  }

  absl::Status BringOne(HubClient& hub, const HubFile& file,
                        const DownloadContext& context) {
    LOCKSTEP_RETURN_IF_ERROR(
        DownloadBlob(hub, FileAt(model_, commit_, file.name), file, context));
    return cache_.Link(model_.repo, commit_, file.name, file.etag);
  }

  // Not of one that ended because another did.
  static absl::Status FirstCause(const std::vector<absl::Status>& statuses) {
    for (const absl::Status& status : statuses) {
      if (!status.ok() && !absl::IsCancelled(status)) return status;
    }
    return absl::OkStatus();
  }

  const HubModel& model_;
  const HubSettings& settings_;
  const FetchOptions& options_;
  const HubCache cache_;
  HubClient hub_;
  std::string commit_;
};

}  // namespace

absl::StatusOr<std::string> FetchModel(const std::string& model,
                                       const HubSettings& settings,
                                       const FetchOptions& options) {
  LOCKSTEP_ASSIGN_OR_RETURN(const std::optional<HubModel> of_hub,
                            ParseHubModel(model));
  if (!of_hub.has_value()) return model;
  auto path = Fetch(*of_hub, settings, options).Run();
  if (!absl::IsNotFound(path.status())) return path;
  return absl::NotFoundError(absl::StrCat(
      path.status().message(), " Nor is there a file or folder ", model, "."));
}

}  // namespace lockstep
