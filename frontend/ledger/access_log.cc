#include "frontend/ledger/access_log.h"

#include <absl/strings/str_cat.h>
#include <absl/time/time.h>
#include <fcntl.h>
#include <glog/logging.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "common/program/hangups.h"

namespace lockstep {
namespace {

constexpr char kStandardOutput[] = "-";
constexpr absl::Duration kLookEvery = absl::Seconds(1);

int OpenFile(const std::string& path) {
  constexpr mode_t kOwnerAndGroup = 0640;
  return open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC,
              kOwnerAndGroup);
}

// A pipe whose reader is gone is an error, and not the end of the process.
void BlockPipeSignal() {
  sigset_t pipe;
  sigemptyset(&pipe);
  sigaddset(&pipe, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &pipe, nullptr);
}

// False: some of it may be written.
bool WriteAll(int file, absl::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t size = write(file, bytes.data(), bytes.size());
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) return false;
    bytes.remove_prefix(size);
  }
  return true;
}

}  // namespace

absl::StatusOr<std::unique_ptr<AccessLog>> AccessLog::Open(
    const std::string& path, const std::string& flag,
    size_t max_waiting_bytes) {
  const int file = path == kStandardOutput ? STDOUT_FILENO : OpenFile(path);
  if (file < 0) {
    return absl::UnavailableError(
        absl::StrCat("cannot write to ", path, ": ", strerror(errno),
                     "; choose another file with --", flag, "."));
  }
  return std::unique_ptr<AccessLog>(
      new AccessLog(path, file, max_waiting_bytes));
}

AccessLog::AccessLog(std::string path, int file, size_t max_waiting_bytes)
    : path_(std::move(path)),
      max_waiting_bytes_(max_waiting_bytes),
      file_(file) {
  CountHangups();
  hangups_ = NumHangups();
  thread_ = std::thread([this] { Run(); });
  pthread_setname_np(thread_.native_handle(), "access-log");
}

AccessLog::~AccessLog() {
  {
    absl::MutexLock lock(&mutex_);
    is_ending_ = true;
  }
  thread_.join();
  if (path_ != kStandardOutput) close(file_);
}

void AccessLog::Write(absl::string_view line) {
  {
    absl::MutexLock lock(&mutex_);
    if (waiting_.size() + line.size() <= max_waiting_bytes_) {
      waiting_.append(line.data(), line.size());
      return;
    }
  }
  dropped_.fetch_add(1);
}

void AccessLog::Run() {
  BlockPipeSignal();
  while (true) {
    std::string lines;
    bool is_ending = false;
    {
      absl::MutexLock lock(&mutex_);
      mutex_.AwaitWithTimeout(absl::Condition(this, &AccessLog::HasWork),
                              kLookEvery);
      lines.swap(waiting_);
      is_ending = is_ending_;
    }
    ReopenIfMoved();
    if (!lines.empty()) Put(lines);
    if (is_ending) return;
  }
}

void AccessLog::Put(const std::string& lines) {
  const uint64_t count = std::count(lines.begin(), lines.end(), '\n');
  if (WriteAll(file_, lines)) {
    written_.fetch_add(count);
    return;
  }
  dropped_.fetch_add(count);
  LOG_EVERY_N(ERROR, 1000) << "cannot write to " << path_ << ": "
                           << strerror(errno);
}

void AccessLog::ReopenIfMoved() {
  if (path_ == kStandardOutput) return;
  const int seen = std::exchange(hangups_, NumHangups());
  struct stat named = {}, held = {};
  const bool is_there =
      stat(path_.c_str(), &named) == 0 && fstat(file_, &held) == 0 &&
      named.st_dev == held.st_dev && named.st_ino == held.st_ino;
  if (is_there && seen == hangups_) return;
  const int opened = OpenFile(path_);
  if (opened < 0) {  // goes on with the one it has
    LOG_EVERY_N(ERROR, 1000)
        << "cannot open " << path_ << ": " << strerror(errno);
    return;
  }
  close(std::exchange(file_, opened));
}

}  // namespace lockstep
