#include "worker/collectives/shared_segment.h"

#include <absl/status/status.h>
#include <absl/strings/str_cat.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <new>
#include <string>

#include "common/status_macros.h"

namespace lockstep {
namespace {

constexpr char kShownName[] = "lockstep-collectives";  // in /proc/…/maps
constexpr uint64_t kMark = 0x6c6f636b73746570;         // "lockstep"
constexpr size_t kSlots = 2;

}  // namespace

struct SharedSegment::Header {
  uint64_t mark;  // kMark
  int size;
  SharedBarrier barrier;
};

SharedSegment::SharedSegment(int fd, void* memory, int size)
    : fd_(fd), memory_(memory), size_(size) {}

SharedSegment::~SharedSegment() {
  munmap(memory_, Bytes(size_));
  close(fd_);
}

SharedSegment::Address SharedSegment::address() const {
  return {.process_id = getpid(), .file_descriptor = fd_};
}

SharedSegment::Header& SharedSegment::header() {
  return *static_cast<Header*>(memory_);
}

SharedBarrier& SharedSegment::barrier() { return header().barrier; }

SharedSegment::Slot& SharedSegment::slot(int rank, int parity) {
  static_assert(sizeof(Header) % alignof(Slot) == 0);
  Slot* slots =
      reinterpret_cast<Slot*>(static_cast<char*>(memory_) + sizeof(Header));
  return slots[rank * kSlots + parity];
}

size_t SharedSegment::Bytes(int size) {
  return sizeof(Header) + size * kSlots * sizeof(Slot);
}

// Takes over `fd`.
absl::StatusOr<std::unique_ptr<SharedSegment>> SharedSegment::Map(int fd,
                                                                  int size) {
  void* memory = mmap(nullptr, Bytes(size), PROT_READ | PROT_WRITE, MAP_SHARED,
                      fd, /*offset=*/0);
  if (memory == MAP_FAILED) {
    const int error = errno;
    close(fd);
    return absl::ErrnoToStatus(
        error, absl::StrCat("mapping ", Bytes(size),
                            " bytes of memory shared by ", size, " ranks"));
  }
  return std::unique_ptr<SharedSegment>(new SharedSegment(fd, memory, size));
}

absl::StatusOr<std::unique_ptr<SharedSegment>> SharedSegment::Create(int size) {
  const int fd = memfd_create(kShownName, MFD_CLOEXEC);
  if (fd < 0) {
    return absl::ErrnoToStatus(errno, "creating memory for the ranks to share");
  }
  // Takes the memory now: without it, a shortage is a SIGBUS later on.
  if (const int error = posix_fallocate(fd, 0, Bytes(size)); error != 0) {
    close(fd);
    return absl::ResourceExhaustedError(
        absl::StrCat("the collectives of ", size, " ranks need ", Bytes(size),
                     " bytes of shared memory (", std::strerror(error),
                     "); raise the memory limit or lower --kv_cache_memory."));
  }
  LOCKSTEP_ASSIGN_OR_RETURN(auto segment, Map(fd, size));
  Header* header = new (segment->memory_) Header();
  header->mark = kMark;
  header->size = size;
  return segment;
}

absl::StatusOr<std::unique_ptr<SharedSegment>> SharedSegment::Attach(
    const Address& address, int size) {
  const std::string path = absl::StrCat("/proc/", address.process_id, "/fd/",
                                        address.file_descriptor);
  const int fd = open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (fd < 0) {
    return absl::UnavailableError(absl::StrCat(
        "cannot open the leader's shared memory ", path, " (",
        std::strerror(errno),
        "); the ranks of a group must run as the same user and see each "
        "other's processes in /proc."));
  }
  struct stat file = {};
  if (fstat(fd, &file) != 0 || file.st_size != Bytes(size)) {
    close(fd);
    return absl::InvalidArgumentError(
        absl::StrCat(path, " has ", file.st_size, " bytes; the shared memory ",
                     "of ", size, " ranks has ", Bytes(size), "."));
  }
  LOCKSTEP_ASSIGN_OR_RETURN(auto segment, Map(fd, size));
  if (segment->header().mark != kMark || segment->header().size != size) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, " is no shared memory of ", size, " ranks."));
  }
  return segment;
}

}  // namespace lockstep
