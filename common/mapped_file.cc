#include "common/mapped_file.h"

#include <absl/status/status.h>
#include <absl/strings/str_cat.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

namespace lockstep {
namespace {

// Maps what `fd` refers to; the caller closes it.
absl::StatusOr<absl::Span<const uint8_t>> Map(int fd, const std::string& path) {
  struct stat info;
  if (fstat(fd, &info) != 0) {
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot examine ", path));
  }
  if (!S_ISREG(info.st_mode)) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, " is ", S_ISDIR(info.st_mode) ? "a folder, " : "",
                     "not a regular file."));
  }
  const size_t size = info.st_size;
  if (size == 0) return absl::Span<const uint8_t>();  // can not be mapped
  void* const data = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
  if (data == MAP_FAILED) {
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot map ", path));
  }
  return absl::MakeConstSpan(static_cast<const uint8_t*>(data), size);
}

}  // namespace

absl::StatusOr<std::unique_ptr<MappedFile>> MappedFile::Open(
    const std::string& path) {
  // Non-blocking, so that a pipe is refused rather than waited for.
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) {
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot open ", path));
  }
  const auto bytes = Map(fd, path);
  close(fd);
  if (!bytes.ok()) return bytes.status();
  return std::unique_ptr<MappedFile>(new MappedFile(path, *bytes));
}

MappedFile::MappedFile(std::string path, absl::Span<const uint8_t> bytes)
    : path_(std::move(path)), bytes_(bytes) {}

void MappedFile::DropPages() const {
  if (bytes_.empty()) return;
  // Nothing is lost if the system will not.
  madvise(const_cast<uint8_t*>(bytes_.data()), bytes_.size(), MADV_DONTNEED);
}

MappedFile::~MappedFile() {
  if (bytes_.empty()) return;
  munmap(const_cast<uint8_t*>(bytes_.data()), bytes_.size());
}

}  // namespace lockstep
