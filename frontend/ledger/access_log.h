#pragma once

#include <absl/base/thread_annotations.h>
#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>
#include <absl/synchronization/mutex.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>

namespace lockstep {

// A file that lines are appended to, on a thread of its own, "access-log". Who
// writes does not wait: what a slow disk leaves over the bound is dropped, and
// counted.
//
//   LOCKSTEP_ASSIGN_OR_RETURN(auto log, AccessLog::Open(path));
//   log->Write("{…}\n");
//
// A file that was renamed or removed is opened anew before the next lines are
// written, and so it is after SIGHUP; both are seen within a second. What is
// waiting when it is destroyed is written then. Any thread.
class AccessLog {
 public:
  static constexpr size_t kMaxWaitingBytes = 4 << 20;

  // "-" is the standard output. `flag` names the option that the sentence of a
  // failure tells to change.
  static absl::StatusOr<std::unique_ptr<AccessLog>> Open(
      const std::string& path, const std::string& flag,
      size_t max_waiting_bytes = kMaxWaitingBytes);

  ~AccessLog();
  AccessLog(const AccessLog&) = delete;
  AccessLog& operator=(const AccessLog&) = delete;

  // `line` ends with '\n'.
  void Write(absl::string_view line);

  // Lines so far.
  uint64_t written() const { return written_.load(); }
  uint64_t dropped() const { return dropped_.load(); }

 private:
  AccessLog(std::string path, int file, size_t max_waiting_bytes);

  void Run();  // the thread
  bool HasWork() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return is_ending_ || !waiting_.empty();
  }
  void Put(const std::string& lines);
  void ReopenIfMoved();

  const std::string path_;
  const size_t max_waiting_bytes_;

  // The thread's.
  int file_;
  int hangups_ = 0;  // seen

  std::atomic<uint64_t> written_ = 0;
  std::atomic<uint64_t> dropped_ = 0;
  absl::Mutex mutex_;
  std::string waiting_ ABSL_GUARDED_BY(mutex_);
  bool is_ending_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace lockstep
