// NCCL without a device, beside the fake driver, with NCCL's own symbols: ranks
// are threads of this process, and calls run on their streams when all have
// come. Sums are in rank order.
#include <algorithm>
#include <cstddef>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "tests/testing/device/fake_cuda_control.h"
#include "tests/testing/device/fake_cuda_machine.h"

namespace lockstep::fake_cuda {
namespace {

constexpr int kInvalidArgument = 4;
constexpr int kInProgress = 7;
constexpr unsigned kMagic = 0xcafebeef;
constexpr size_t kIdBytes = 128;

// A call that all ranks make; guarded by the machine's lock.
struct Exchange {
  std::vector<std::vector<float>> parts;  // by rank
  int arrived = 0;
  int done = 0;
};

struct Group {
  int size = 0;
  int joined = 0;
  std::map<int, Exchange> exchanges;  // by number
};

std::map<std::string, std::shared_ptr<Group>>& groups() {
  static std::map<std::string, std::shared_ptr<Group>> groups;
  return groups;
}

struct Id {
  char bytes[kIdBytes];
};

// The beginning of ncclConfig_t.
struct Config {
  size_t size;
  unsigned magic;
  unsigned version;
  int blocking;
};

// Lives as long as work on a stream may name it.
struct Rank {
  std::shared_ptr<Group> group;
  int rank = 0;
  int next = 0;  // exchange
  int error = kSuccess;
  bool aborted = false;
};

// Under the lock, before a call reads or writes a tensor.
void Touch() {
  if (machine().touches != nullptr) machine().touches(machine().touched);
}

using Parts = std::vector<std::vector<float>>;

// Shows `in` to all ranks, waits for theirs and hands them to `use`, unless
// this rank aborts. Tensors are touched under the lock, and not once the rank
// has aborted: their owner may free them when ncclCommAbort returns.
template <typename Use>
void Meet(Rank* self, int number, const float* in, size_t count,
          const Use& use) {
  std::unique_lock lock(machine().mutex);
  if (self->aborted) return;
  std::map<int, Exchange>& exchanges = self->group->exchanges;
  Exchange& exchange = exchanges[number];
  exchange.parts.resize(self->group->size);
  Touch();
  exchange.parts[self->rank].assign(in, in + count);
  ++exchange.arrived;
  machine().changed.notify_all();
  machine().changed.wait(lock, [&] {
    return self->aborted || exchange.arrived == self->group->size;
  });
  if (self->aborted) return;
  Touch();
  use(exchange.parts);
  if (++exchange.done == self->group->size) exchanges.erase(number);
}

// Lets the stream show `in` to all ranks and hand their parts to `use`.
template <typename Use>
int EnqueueExchange(const char* call, const void* in, size_t count,
                    const std::shared_ptr<Rank>& rank, CUstream_st* stream,
                    Use use) {
  if (const int error = Call(call, [](auto&) { return kSuccess; })) {
    return error;
  }
  const auto work = [in, count, use, self = rank, number = rank->next++] {
    Meet(self.get(), number, static_cast<const float*>(in), count, use);
  };
  return Enqueue("a call of NCCL's", stream, work);
}

}  // namespace

extern "C" {

struct ncclComm {
  std::shared_ptr<Rank> rank;
};

void FakeNcclError(int rank, int code) {
  const std::lock_guard lock(machine().mutex);
  machine().nccl_rank = rank;
  machine().nccl_error = code;
}

void FakeNcclTouches(void (*touches)(void*), void* data) {
  const std::lock_guard lock(machine().mutex);
  machine().touches = touches;
  machine().touched = data;
}

int ncclGetUniqueId(Id* id) {
  return Call("ncclGetUniqueId", [&](auto&) {
    std::memset(id->bytes, 0, kIdBytes);
    std::strcpy(id->bytes, std::to_string(groups().size()).c_str());
    groups()[id->bytes] = std::make_shared<Group>();
    return kSuccess;
  });
}

int ncclCommInitRankConfig(ncclComm** comm, int size, Id id, int rank,
                           Config* config) {
  return Call("ncclCommInitRankConfig", [&](auto& lock) {
    if (config->magic != kMagic) return kInvalidArgument;
    const auto group = groups().find(id.bytes);
    if (group == groups().end()) return kInvalidArgument;
    group->second->size = size;
    ++group->second->joined;
    *comm = new ncclComm{std::make_shared<Rank>()};
    (*comm)->rank->group = group->second;
    (*comm)->rank->rank = rank;
    ++machine().alive;
    machine().changed.notify_all();
    if (config->blocking == 0) return kInProgress;
    machine().changed.wait(lock, [&] { return group->second->joined == size; });
    return kSuccess;
  });
}

int ncclCommGetAsyncError(ncclComm* comm, int* state) {
  return Call("ncclCommGetAsyncError", [&](auto&) {
    const Rank& rank = *comm->rank;
    *state = rank.group->joined < rank.group->size ? kInProgress : kSuccess;
    if (machine().nccl_rank == rank.rank) *state = machine().nccl_error;
    return kSuccess;
  });
}

int ncclAllReduce(const void* in, void* out, size_t count, int, int,
                  ncclComm* comm, CUstream_st* stream) {
  const auto add = [out, count](const Parts& parts) {
    auto* const sums = static_cast<float*>(out);
    for (size_t i = 0; i < count; ++i) {
      sums[i] = 0;
      for (const std::vector<float>& part : parts) sums[i] += part[i];
    }
  };
  return EnqueueExchange("ncclAllReduce", in, count, comm->rank, stream, add);
}

int ncclAllGather(const void* in, void* out, size_t count, int, ncclComm* comm,
                  CUstream_st* stream) {
  const auto join = [out](const Parts& parts) {
    auto* to = static_cast<float*>(out);
    for (const std::vector<float>& part : parts) {
      to = std::copy(part.begin(), part.end(), to);
    }
  };
  return EnqueueExchange("ncclAllGather", in, count, comm->rank, stream, join);
}

// Waits for a call that is at its tensors; none touches them later.
int ncclCommAbort(ncclComm* comm) {
  const std::lock_guard lock(machine().mutex);
  comm->rank->aborted = true;
  --machine().alive;
  machine().changed.notify_all();
  delete comm;
  return kSuccess;
}

const char* ncclGetErrorString(int error) {
  return error == 6 ? "remote process exited or there was a network error"
                    : "unhandled system error";
}

const char* ncclGetLastError(ncclComm*) { return "the fake's own words"; }
}

}  // namespace lockstep::fake_cuda
