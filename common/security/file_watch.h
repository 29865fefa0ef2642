#pragma once

#include <absl/base/thread_annotations.h>
#include <absl/status/statusor.h>
#include <absl/synchronization/mutex.h>
#include <absl/time/time.h>

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "common/security/secret.h"

namespace lockstep {

// A file that a flag names.
struct NamedFile {
  std::string flag;  // without its dashes, for the sentence of a failure
  std::string path;
};

// Small files that count as one, and are read again when one has changed: keys,
// certificates. What is in force is always a whole set that was found good.
//
//   LOCKSTEP_ASSIGN_OR_RETURN(
//       auto watch,
//       FileWatch::Start({{"api_keys_file", path}},
//                        [&](const FileWatch::Contents& texts) {
//                          return TakeKeys(texts[0]);
//                        }));
//
// A thread, "file-watch", looks at their contents, not at their dates, so that
// links that are swapped are seen too. The destructor joins it.
class FileWatch {
 public:
  using Contents = std::vector<std::string>;  // in the order of the files
  // OK, or why what was taken before stays in force.
  using Take = std::function<absl::Status(const Contents& contents)>;

  static constexpr size_t kMaxBytes = 1 << 20;  // of a file

  // Reads once before it returns; the error is then the file's, which names its
  // flag, or `take`'s. Later ones are logged, each once. `take` is called on
  // the caller's thread, then on the watch's.
  static absl::StatusOr<std::unique_ptr<FileWatch>> Start(
      std::vector<NamedFile> files, Take take,
      absl::Duration every = absl::Seconds(1));
  ~FileWatch();
  FileWatch(const FileWatch&) = delete;
  FileWatch& operator=(const FileWatch&) = delete;

 private:
  FileWatch(std::vector<NamedFile> files, Take take)
      : files_(std::move(files)), take_(std::move(take)) {}

  absl::StatusOr<Contents> Read() const;
  // OK where nothing has changed since the last look.
  absl::Status Look();
  void Run(absl::Duration every);  // the thread

  const std::vector<NamedFile> files_;
  const Take take_;
  SecretDigest seen_;  // of what the last look saw, be it an error

  absl::Mutex mutex_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace lockstep
