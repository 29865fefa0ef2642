#pragma once

#include <absl/base/thread_annotations.h>
#include <absl/synchronization/mutex.h>
#include <absl/time/time.h>

#include <cstdint>
#include <functional>
#include <string>

namespace lockstep {

// "1.2 GiB"
std::string ByteSizeText(int64_t bytes);

// How far the download of a model is, told now and then in a few words:
//
//   owner/name: 1.2 of 4.3 GiB, 28%, 45.1 MiB/s
//
// Any thread.
class DownloadProgress {
 public:
  using Tell = std::function<void(const std::string&)>;

  // `tell` may be null; it is called by the threads that Add, perhaps by two at
  // once.
  DownloadProgress(std::string what, int64_t all_bytes, Tell tell,
                   absl::Duration every);

  // Bytes that were there already, and do not count as speed.
  void Skip(int64_t bytes);
  void Add(int64_t bytes);

 private:
  std::string Text() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::string what_;
  const int64_t all_bytes_;
  const Tell tell_;
  const absl::Duration every_;
  const absl::Time begin_;

  absl::Mutex mutex_;
  absl::Time told_ ABSL_GUARDED_BY(mutex_);
  int64_t skipped_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace lockstep
