#include "hub/hub_cache.h"

#include <absl/strings/ascii.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_replace.h>
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "common/status_macros.h"
#include "hub/model_name.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

absl::Status Failure(absl::string_view what, const std::string& path,
                     const char* why) {
  return absl::FailedPreconditionError(
      absl::StrCat("can not ", what, " ", path, ": ", why,
                   "; HF_HUB_CACHE or HF_HOME names another folder."));
}

// Moves a file that is whole to its place, so that no reader sees a part.
absl::Status Replace(const std::string& from, const std::string& to) {
  if (std::rename(from.c_str(), to.c_str()) == 0) return absl::OkStatus();
  return Failure("write", to, std::strerror(errno));
}

// Nobody else's, be it another process or another thread of this one.
std::string Temporary(const std::string& path) {
  static std::atomic<int64_t> next{0};
  return absl::StrCat(path, ".", getpid(), "-", next++, ".tmp");
}

}  // namespace

absl::Status MakeFolderOf(const std::string& path) {
  std::error_code error;
  const fs::path folder = fs::path(path).parent_path();
  fs::create_directories(folder, error);
  if (!error) return absl::OkStatus();
  return Failure("make the folder", folder.string(), error.message().c_str());
}

std::string HubCache::Repo(const std::string& repo) const {
  return absl::StrCat("models--", absl::StrReplaceAll(repo, {{"/", "--"}}));
}

std::string HubCache::Snapshot(const std::string& repo,
                               const std::string& commit) const {
  return absl::StrCat(folder_, "/", Repo(repo), "/snapshots/", commit);
}

std::string HubCache::Blob(const std::string& repo,
                           const std::string& etag) const {
  return absl::StrCat(folder_, "/", Repo(repo), "/blobs/", etag);
}

std::optional<std::string> HubCache::CommitOf(
    const std::string& repo, const std::string& revision) const {
  if (IsCommit(revision)) return revision;
  std::ifstream file(
      absl::StrCat(folder_, "/", Repo(repo), "/refs/", revision));
  std::string commit;
  file >> commit;
  if (!IsCommit(commit)) return std::nullopt;
  return commit;
}

absl::Status HubCache::SetCommitOf(const std::string& repo,
                                   const std::string& revision,
                                   const std::string& commit) const {
  if (IsCommit(revision)) return absl::OkStatus();
  const std::string path =
      absl::StrCat(folder_, "/", Repo(repo), "/refs/", revision);
  LOCKSTEP_RETURN_IF_ERROR(MakeFolderOf(path));
  const std::string temporary = Temporary(path);
  if (!(std::ofstream(temporary) << commit << std::flush)) {
    return Failure("write", temporary, std::strerror(errno));
  }
  return Replace(temporary, path);
}

bool HubCache::Has(const std::string& repo, const std::string& commit,
                   const std::string& name) const {
  std::error_code ignored;
  return fs::is_regular_file(absl::StrCat(Snapshot(repo, commit), "/", name),
                             ignored);
}

std::vector<std::string> HubCache::FilesOf(const std::string& repo,
                                           const std::string& commit) const {
  std::vector<std::string> names;
  std::error_code ignored;
  const fs::path snapshot = Snapshot(repo, commit);
  for (auto entry = fs::recursive_directory_iterator(snapshot, ignored);
       entry != fs::recursive_directory_iterator(); entry.increment(ignored)) {
    const std::string name =
        fs::path(entry->path()).lexically_relative(snapshot).string();
    if (Has(repo, commit, name)) names.push_back(name);
  }
  return names;
}

absl::Status HubCache::Link(const std::string& repo, const std::string& commit,
                            const std::string& name,
                            const std::string& etag) const {
  const std::string path = absl::StrCat(Snapshot(repo, commit), "/", name);
  LOCKSTEP_RETURN_IF_ERROR(MakeFolderOf(path));
  // Relative, so that the cache can be moved.
  const std::string target =
      fs::path(Blob(repo, etag))
          .lexically_relative(fs::path(path).parent_path())
          .string();
  const std::string temporary = Temporary(path);
  std::error_code error;
  fs::remove(temporary, error);
  fs::create_symlink(target, temporary, error);
  if (error) return Failure("make the link", path, error.message().c_str());
  return Replace(temporary, path);
}

absl::StatusOr<HubCache::Lock> HubCache::LockBlob(
    const std::string& repo, const std::string& etag) const {
  const std::string path =
      absl::StrCat(folder_, "/.locks/", Repo(repo), "/", etag, ".lock");
  LOCKSTEP_RETURN_IF_ERROR(MakeFolderOf(path));
  const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0664);
  if (fd < 0) return Failure("open", path, std::strerror(errno));
  Lock lock(fd);
  int result = 0;
  do {
    result = flock(fd, LOCK_EX);
  } while (result != 0 && errno == EINTR);
  if (result != 0) return Failure("lock", path, std::strerror(errno));
  return lock;
}

HubCache::Lock::~Lock() {
  if (fd_ >= 0) close(fd_);
}

}  // namespace lockstep
