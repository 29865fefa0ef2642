// The fake driver's streams and events.
#include <chrono>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include "tests/testing/device/fake_cuda_control.h"
#include "tests/testing/device/fake_cuda_machine.h"

namespace lockstep::fake_cuda {

using Work = std::function<void()>;

// Guarded by the machine's lock.
struct CUstream_st {
  std::deque<Work> queue;
  bool working = false, ends = false;
  int device = kNone;
  std::thread worker;

  bool idle() const { return queue.empty() && !working; }
};

struct CUevent_st {
  int64_t recorded = 0;
  // How many of these have happened; outlives an event that is destroyed before
  // it has.
  std::shared_ptr<int64_t> happened = std::make_shared<int64_t>(0);
};

namespace {

void WorkThrough(CUstream_st* stream) {
  Machine& m = machine();
  std::unique_lock lock(m.mutex);
  while (true) {
    m.changed.wait(
        lock, [&] { return stream->queue.empty() ? stream->ends : !m.held; });
    if (stream->queue.empty()) return;
    const Work work = std::move(stream->queue.front());
    stream->queue.pop_front();
    stream->working = true;
    const int delay = m.most_us == 0 ? 0 : m.random() % m.most_us;
    // Woken by nothing, it is as late as a device may be.
    const auto until =
        std::chrono::steady_clock::now() + std::chrono::microseconds(delay);
    while (std::chrono::steady_clock::now() < until) {
      m.changed.wait_until(lock, until);
    }
    lock.unlock();
    work();
    lock.lock();
    stream->working = false;
    --m.pending[stream->device];
    m.changed.notify_all();
  }
}

// Under the lock.
int Put(CUstream_st* stream, Work work) {
  if (current == kNone) return kInvalidContext;
  stream->queue.push_back(std::move(work));
  ++machine().pending[stream->device];
  machine().changed.notify_all();
  return kSuccess;
}

}  // namespace

int Enqueue(const char* call, CUstream_st* stream, Work work) {
  return Call(call, [&](auto&) { return Put(stream, std::move(work)); });
}

extern "C" {

int cuMemcpyHtoDAsync_v2(uint64_t to, const void* from, size_t bytes,
                         CUstream_st* stream) {
  return Enqueue("cuMemcpyHtoDAsync_v2", stream, [=] {
    std::memcpy(reinterpret_cast<void*>(to), from, bytes);
  });
}

int cuMemcpyDtoHAsync_v2(void* to, uint64_t from, size_t bytes,
                         CUstream_st* stream) {
  return Enqueue("cuMemcpyDtoHAsync_v2", stream, [=] {
    std::memcpy(to, reinterpret_cast<const void*>(from), bytes);
  });
}

int cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t bytes,
                         CUstream_st* stream) {
  return Enqueue("cuMemcpyDtoDAsync_v2", stream, [=] {
    std::memcpy(reinterpret_cast<void*>(to),
                reinterpret_cast<const void*>(from), bytes);
  });
}

int cuMemsetD8Async(uint64_t to, unsigned char value, size_t bytes,
                    CUstream_st* stream) {
  return Enqueue("cuMemsetD8Async", stream, [=] {
    std::memset(reinterpret_cast<void*>(to), value, bytes);
  });
}

int FakeCudaLaunch(void* stream, int (*kernel)(void*), void* data) {
  return Enqueue("cuLaunchKernel", static_cast<CUstream_st*>(stream), [=] {
    const int error = kernel(data);
    const std::lock_guard lock(machine().mutex);
    if (error != kSuccess) machine().broken = error;
  });
}

int cuStreamCreate(CUstream_st** stream, unsigned) {
  return Call("cuStreamCreate", [&](auto&) {
    if (current == kNone) return kInvalidContext;
    *stream = new CUstream_st;
    (*stream)->device = current;
    (*stream)->worker = std::thread(WorkThrough, *stream);
    ++machine().alive;
    return kSuccess;
  });
}

int cuStreamDestroy_v2(CUstream_st* stream) {
  {
    const std::lock_guard lock(machine().mutex);
    stream->ends = true;
    machine().changed.notify_all();
    --machine().alive;
  }
  stream->worker.join();
  delete stream;
  return kSuccess;
}

int cuStreamSynchronize(CUstream_st* stream) {
  return Call("cuStreamSynchronize", [&](auto& lock) {
    machine().changed.wait(lock, [&] { return stream->idle(); });
    return kSuccess;
  });
}

int cuStreamQuery(CUstream_st* stream) {
  return Call("cuStreamQuery",
              [&](auto&) { return stream->idle() ? kSuccess : kNotReady; });
}

int cuStreamWaitEvent(CUstream_st* stream, CUevent_st* event, unsigned) {
  return Call("cuStreamWaitEvent", [&](auto&) {
    return Put(stream, [happened = event->happened, awaited = event->recorded] {
      std::unique_lock lock(machine().mutex);
      machine().changed.wait(lock, [&] { return *happened >= awaited; });
    });
  });
}

int cuEventCreate(CUevent_st** event, unsigned) {
  return Call("cuEventCreate", [&](auto&) {
    *event = new CUevent_st;
    ++machine().alive;
    return kSuccess;
  });
}

int cuEventDestroy_v2(CUevent_st* event) {
  const std::lock_guard lock(machine().mutex);
  --machine().alive;
  delete event;
  return kSuccess;
}

int cuEventRecord(CUevent_st* event, CUstream_st* stream) {
  return Call("cuEventRecord", [&](auto&) {
    const auto happen = [happened = event->happened,
                         number = event->recorded + 1] {
      const std::lock_guard lock(machine().mutex);
      *happened = number;
      machine().changed.notify_all();
    };
    const int error = Put(stream, happen);
    if (error == kSuccess) ++event->recorded;
    return error;
  });
}

int cuEventQuery(CUevent_st* event) {
  return Call("cuEventQuery", [&](auto&) {
    return *event->happened == event->recorded ? kSuccess : kNotReady;
  });
}

int cuEventSynchronize(CUevent_st* event) {
  return Call("cuEventSynchronize", [&](auto& lock) {
    machine().changed.wait(lock,
                           [&] { return *event->happened == event->recorded; });
    return kSuccess;
  });
}
}

}  // namespace lockstep::fake_cuda
