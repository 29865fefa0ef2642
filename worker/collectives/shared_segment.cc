#include "worker/collectives/shared_segment.h"

#include <absl/cleanup/cleanup.h>
#include <absl/status/status.h>
#include <absl/strings/str_cat.h>
#include <absl/time/clock.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <new>
#include <utility>

#include "common/status_macros.h"

namespace lockstep {
namespace {

constexpr uint64_t kReady = 0x6c6f636b73746570;  // "lockstep"
constexpr size_t kSlots = 2;

}  // namespace

struct SharedSegment::Header {
  std::atomic<uint64_t> ready;  // kReady once the rest is filled in
  int size;
  std::atomic<int> attached;
  std::atomic<bool> has_attached[kMaxRanks];
  SharedBarrier barrier;
};

SharedSegment::SharedSegment(std::string name, void* memory, int size)
    : name_(std::move(name)), memory_(memory), size_(size) {}

SharedSegment::~SharedSegment() {
  RemoveName();
  munmap(memory_, Bytes(size_));
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

void SharedSegment::RemoveName() {
  // Once all have attached the name is gone and may be somebody else's.
  if (registered_ && header().attached.load() < size_) {
    shm_unlink(name_.c_str());
  }
}

absl::StatusOr<std::unique_ptr<SharedSegment>> SharedSegment::Map(
    const std::string& name, int fd, int size) {
  const int flags = MAP_SHARED | (fd < 0 ? MAP_ANONYMOUS : 0);
  void* memory =
      mmap(nullptr, Bytes(size), PROT_READ | PROT_WRITE, flags, fd, 0);
  if (memory == MAP_FAILED) {
    return absl::ErrnoToStatus(
        errno, absl::StrCat("mapping ", Bytes(size),
                            " bytes of memory shared by ", size, " ranks"));
  }
  return std::unique_ptr<SharedSegment>(new SharedSegment(name, memory, size));
}

absl::StatusOr<std::unique_ptr<SharedSegment>> SharedSegment::CreateAnonymous(
    int size) {
  return Map("", /*fd=*/-1, size);
}

absl::StatusOr<std::unique_ptr<SharedSegment>> SharedSegment::Create(
    const std::string& name, int size) {
  const int fd = shm_open(name.c_str(), O_CREAT | O_EXCL | O_RDWR, 0600);
  if (fd < 0) {
    return absl::ErrnoToStatus(
        errno, absl::StrCat("creating the shared memory segment ", name));
  }
  absl::Cleanup close_fd = [fd] { close(fd); };
  absl::Cleanup remove_name = [&name] { shm_unlink(name.c_str()); };

  // Takes the memory now: without it, a full /dev/shm is a SIGBUS later on.
  if (const int error = posix_fallocate(fd, 0, Bytes(size)); error != 0) {
    return absl::ErrnoToStatus(
        error,
        absl::StrCat("the collectives of ", size, " ranks need ", Bytes(size),
                     " bytes of /dev/shm; enlarge it (docker run "
                     "--shm-size; in Kubernetes an emptyDir with "
                     "medium: Memory at /dev/shm)"));
  }
  LOCKSTEP_ASSIGN_OR_RETURN(std::unique_ptr<SharedSegment> segment,
                            Map(name, fd, size));
  std::move(remove_name).Cancel();
  Header* header = new (segment->memory_) Header();
  header->size = size;
  LOCKSTEP_RETURN_IF_ERROR(segment->Register(/*rank=*/0));
  header->ready.store(kReady, std::memory_order_release);
  return segment;
}

absl::StatusOr<std::unique_ptr<SharedSegment>> SharedSegment::Attach(
    const std::string& name, int rank, int size, absl::Duration timeout) {
  // There is nothing to block on before the segment exists, so this looks every
  // millisecond. A group's start usually finds it at the first look.
  for (const absl::Time deadline = absl::Now() + timeout;;
       absl::SleepFor(absl::Milliseconds(1))) {
    if (absl::Now() > deadline) {
      return absl::DeadlineExceededError(
          absl::StrCat("rank 0 did not create the shared memory segment ", name,
                       " within ", absl::FormatDuration(timeout)));
    }
    const int fd = shm_open(name.c_str(), O_RDWR, 0);
    if (fd < 0 && errno == ENOENT) continue;
    if (fd < 0) {
      return absl::ErrnoToStatus(
          errno, absl::StrCat("opening the shared memory segment ", name));
    }
    absl::Cleanup close_fd = [fd] { close(fd); };
    struct stat file;
    if (fstat(fd, &file) != 0) {
      return absl::ErrnoToStatus(errno, absl::StrCat("looking at ", name));
    }
    if (file.st_size == 0) continue;  // rank 0 is about to take the memory
    if (file.st_size != Bytes(size)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "the shared memory segment ", name, " has ", file.st_size,
          " bytes, for ", size, " ranks it has ", Bytes(size)));
    }
    LOCKSTEP_ASSIGN_OR_RETURN(std::unique_ptr<SharedSegment> segment,
                              Map(name, fd, size));
    if (segment->header().ready.load(std::memory_order_acquire) != kReady) {
      continue;
    }
    LOCKSTEP_RETURN_IF_ERROR(segment->Register(rank));
    return segment;
  }
}

absl::Status SharedSegment::Register(int rank) {
  if (header().has_attached[rank].exchange(true)) {
    return absl::AlreadyExistsError(
        absl::StrCat("rank ", rank, " of the shared memory segment ", name_,
                     " is taken by another process"));
  }
  registered_ = true;
  if (header().attached.fetch_add(1) + 1 == size_) shm_unlink(name_.c_str());
  return absl::OkStatus();
}

}  // namespace lockstep
