#include "hub/blob_download.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/string_view.h>
#include <absl/time/clock.h>
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include "common/status_macros.h"
#include "hub/content_hash.h"

namespace lockstep {
namespace {

constexpr int kMostAttempts = 6;  // that bring nothing
constexpr size_t kReadBytes = 1 << 20;

std::string IncompletePath(const HubCache& cache, const HubModel& file,
                           const HubFile& described) {
  return cache.Blob(file.repo, described.etag) + ".incomplete";
}

absl::Status WriteFailure(const std::string& path, int error) {
  const std::string text =
      absl::StrCat("can not write ", path, ": ", std::strerror(error));
  if (error == ENOSPC || error == EDQUOT || error == EFBIG) {
    return absl::ResourceExhaustedError(absl::StrCat(
        text, "; make room and start again, which goes on from here, or set ",
        "HF_HUB_CACHE or HF_HOME to a folder of another disk."));
  }
  return absl::FailedPreconditionError(
      absl::StrCat(text, "; HF_HUB_CACHE or HF_HOME names another folder."));
}

// The beginning of a blob, on disk, and the hash of it.
class IncompleteBlob {
 public:
  IncompleteBlob(std::string path, const HubFile& described)
      : path_(std::move(path)), described_(described) {}
  ~IncompleteBlob() {
    if (fd_ >= 0) close(fd_);
  }
  IncompleteBlob(const IncompleteBlob&) = delete;
  IncompleteBlob& operator=(const IncompleteBlob&) = delete;

  const std::string& path() const { return path_; }
  int64_t bytes() const { return bytes_; }

  // Takes over what is there.
  absl::Status Open() {
    LOCKSTEP_RETURN_IF_ERROR(MakeFolderOf(path_));
    fd_ = open(path_.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (fd_ < 0) return WriteFailure(path_, errno);
    hash_ = ContentHash::Like(described_.etag, described_.size);
    std::vector<char> buffer(kReadBytes);
    while (true) {
      const ssize_t got = read(fd_, buffer.data(), buffer.size());
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return WriteFailure(path_, errno);
      if (got == 0) break;
      bytes_ += got;
      // No beginning of it.
      if (bytes_ > described_.size) return Restart();
      hash_->Add(absl::string_view(buffer.data(), got));
    }
    return absl::OkStatus();
  }

  absl::Status Restart() {
    if (ftruncate(fd_, 0) != 0) return WriteFailure(path_, errno);
    hash_ = ContentHash::Like(described_.etag, described_.size);
    bytes_ = 0;
    return absl::OkStatus();
  }

  absl::Status Add(absl::string_view part) {
    hash_->Add(part);
    while (!part.empty()) {
      const ssize_t written = write(fd_, part.data(), part.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) return WriteFailure(path_, errno);
      bytes_ += written;
      part.remove_prefix(written);
    }
    return absl::OkStatus();
  }

  // Makes it the blob `to`, if it is what the hub has described.
  absl::Status Finish(const std::string& to) {
    const std::string found = hash_->Finish();
    if (found != described_.etag) {
      std::remove(path_.c_str());
      return absl::DataLossError(
          absl::StrCat(described_.name, " came damaged: its ", hash_->kind(),
                       " is ", found, ", the hub's is ", described_.etag,
                       ". What came was deleted; start again."));
    }
    if (fdatasync(fd_) != 0) return WriteFailure(path_, errno);
    if (std::rename(path_.c_str(), to.c_str()) == 0) return absl::OkStatus();
    return WriteFailure(to, errno);
  }

 private:
  const std::string path_;
  const HubFile& described_;
  int fd_ = -1;
  int64_t bytes_ = 0;
  std::optional<ContentHash> hash_;
};

// One try to bring the rest.
absl::Status ReadRest(HubClient& hub, const HubModel& file,
                      const HubFile& described, const DownloadContext& context,
                      IncompleteBlob& blob) {
  bool begun = false;
  const int64_t first_byte = blob.bytes();
  const auto take = [&](const HttpReply& reply,
                        absl::string_view part) -> absl::Status {
    if (context.stop) return absl::CancelledError("another file failed.");
    if (!begun && reply.status == 200 && first_byte > 0) {
      context.progress.Skip(-first_byte);  // it comes once more
      LOCKSTEP_RETURN_IF_ERROR(blob.Restart());
    }
    begun = true;
    if (part.size() > static_cast<size_t>(described.size - blob.bytes())) {
      return absl::DataLossError(
          absl::StrCat(described.name, " has more than the ", described.size,
                       " bytes that the hub says."));
    }
    LOCKSTEP_RETURN_IF_ERROR(blob.Add(part));
    context.progress.Add(part.size());
    return absl::OkStatus();
  };
  LOCKSTEP_RETURN_IF_ERROR(hub.Read(file, first_byte, take));
  if (blob.bytes() == described.size) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat(described.name, " ended after ",
                                             blob.bytes(), " of ",
                                             described.size, " bytes."));
}

absl::Status ReadAll(HubClient& hub, const HubModel& file,
                     const HubFile& described, const DownloadContext& context,
                     IncompleteBlob& blob) {
  absl::Duration wait = context.retry_wait;
  for (int attempt = 1; blob.bytes() < described.size; ++attempt) {
    const int64_t before = blob.bytes();
    const absl::Status status = ReadRest(hub, file, described, context, blob);
    if (blob.bytes() > before) {
      attempt = 0;
      wait = context.retry_wait;
    }
    if (status.ok()) break;
    if (!absl::IsUnavailable(status) || attempt == kMostAttempts ||
        context.stop) {
      return status;
    }
    absl::SleepFor(wait);
    wait *= 2;
  }
  return absl::OkStatus();
}

}  // namespace

int64_t IncompleteBytes(const HubCache& cache, const HubModel& file,
                        const HubFile& described) {
  std::error_code error;
  const auto bytes =
      std::filesystem::file_size(IncompletePath(cache, file, described), error);
  return error ? 0 : static_cast<int64_t>(bytes);
}

absl::Status DownloadBlob(HubClient& hub, const HubModel& file,
                          const HubFile& described,
                          const DownloadContext& context) {
  const std::string path = context.cache.Blob(file.repo, described.etag);
  LOCKSTEP_ASSIGN_OR_RETURN(const HubCache::Lock lock,
                            context.cache.LockBlob(file.repo, described.etag));
  std::error_code ignored;
  if (std::filesystem::exists(path, ignored)) {
    context.progress.Skip(described.size);
    return absl::OkStatus();
  }
  IncompleteBlob blob(IncompletePath(context.cache, file, described),
                      described);
  LOCKSTEP_RETURN_IF_ERROR(blob.Open());
  context.progress.Skip(blob.bytes());
  LOCKSTEP_RETURN_IF_ERROR(ReadAll(hub, file, described, context, blob));
  return blob.Finish(path);
}

}  // namespace lockstep
