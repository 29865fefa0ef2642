#include "tests/testing/device/fake_cuda_machine.h"

#include "tests/testing/device/fake_cuda_control.h"

namespace lockstep::fake_cuda {

Machine& machine() {
  static Machine machine;
  return machine;
}

int Enter(const char* call) {
  Machine& m = machine();
  if (m.broken != 0) return m.broken;
  if (m.code == 0 || (!m.failing.empty() && m.failing != call)) return kSuccess;
  if (m.fails_in > 1) {
    --m.fails_in;
    return kSuccess;
  }
  if (m.failed.empty()) m.failed = call;
  return m.code;
}

extern "C" {

void FakeCudaFail(const char* call, int nth, int code) {
  const std::lock_guard lock(machine().mutex);
  machine().failing = call;
  machine().failed.clear();
  machine().fails_in = nth;
  machine().code = code;
}

const char* FakeCudaFailed() {
  static std::string failed;
  const std::lock_guard lock(machine().mutex);
  failed = machine().failed;
  return failed.c_str();
}

void FakeCudaDelay(unsigned seed, int most_us) {
  const std::lock_guard lock(machine().mutex);
  machine().random.seed(seed);
  machine().most_us = most_us;
}

void FakeCudaHold(int hold) {
  const std::lock_guard lock(machine().mutex);
  machine().held = hold != 0;
  machine().changed.notify_all();
}

void FakeCudaMachine(int devices, int driver_version, long long memory_bytes) {
  const std::lock_guard lock(machine().mutex);
  machine().devices = devices;
  machine().version = driver_version;
  machine().total = memory_bytes;
}

void FakeCudaReset() {
  const std::lock_guard lock(machine().mutex);
  static_cast<Settings&>(machine()) = Settings();
  machine().changed.notify_all();
}

int FakeCudaAlive() {
  const std::lock_guard lock(machine().mutex);
  return machine().alive + static_cast<int>(machine().allocations.size() +
                                            machine().page_locked.size());
}
}

}  // namespace lockstep::fake_cuda
