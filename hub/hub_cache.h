#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace lockstep {

// The folder in which Hugging Face's programs keep what they downloaded, as
// huggingface_hub lays it out ("Understand caching" in its documentation):
//
//   models--owner--name/blobs/ETAG                    a file's content
//   models--owner--name/blobs/ETAG.incomplete         its beginning
//   models--owner--name/snapshots/COMMIT/FILE         a link to its blob
//   models--owner--name/refs/REVISION                 a commit
//   .locks/models--owner--name/ETAG.lock              flock of who downloads it
//
// Paths of a repository at a commit; both, and names of files, are known to be
// of a safe form. Any thread.
class HubCache {
 public:
  class Lock;

  explicit HubCache(std::string folder) : folder_(std::move(folder)) {}

  const std::string& folder() const { return folder_; }

  std::string Snapshot(const std::string& repo,
                       const std::string& commit) const;
  std::string Blob(const std::string& repo, const std::string& etag) const;

  // The commit that a branch or a tag was last known to be; nothing where none
  // is known.
  std::optional<std::string> CommitOf(const std::string& repo,
                                      const std::string& revision) const;
  absl::Status SetCommitOf(const std::string& repo, const std::string& revision,
                           const std::string& commit) const;

  // Whether a snapshot has a file, all of it.
  bool Has(const std::string& repo, const std::string& commit,
           const std::string& name) const;
  std::vector<std::string> FilesOf(const std::string& repo,
                                   const std::string& commit) const;

  // Puts a blob that is there into a snapshot.
  absl::Status Link(const std::string& repo, const std::string& commit,
                    const std::string& name, const std::string& etag) const;

  // Waits for any other process that downloads the blob.
  absl::StatusOr<Lock> LockBlob(const std::string& repo,
                                const std::string& etag) const;

 private:
  std::string Repo(const std::string& repo) const;

  const std::string folder_;
};

// Held for as long as it lives.
class HubCache::Lock {
 public:
  Lock(Lock&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Lock& operator=(Lock&&) = delete;
  ~Lock();

 private:
  friend class HubCache;
  explicit Lock(int fd) : fd_(fd) {}

  int fd_;
};

// Makes a file's folder, and those above it. The error names the folder, and
// what sets it.
absl::Status MakeFolderOf(const std::string& path);

}  // namespace lockstep
