#include "tests/testing/device/fake_cuda.h"

#include <dlfcn.h>
#include <glog/logging.h>

#include <memory>
#include <utility>

#include "tests/testing/device/fake_cuda_control.h"

namespace lockstep {
namespace {

// Where Bazel puts it for tests.
constexpr char kLibrary[] = "tests/testing/device/fake_cuda_driver.so";

template <typename Function>
Function* Find(void* library, const char* name) {
  return reinterpret_cast<Function*>(dlsym(library, name));
}

}  // namespace

FakeCuda::FakeCuda()
    : library_(kLibrary), handle_(dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL)) {
  CHECK(handle_ != nullptr) << dlerror();
}

FakeCuda::~FakeCuda() {
  Find<decltype(FakeCudaReset)>(handle_, "FakeCudaReset")();
  dlclose(handle_);
}

void FakeCuda::Fail(const std::string& call, int nth, int code) {
  Find<decltype(FakeCudaFail)>(handle_, "FakeCudaFail")(call.c_str(), nth,
                                                        code);
}

std::string FakeCuda::failed() const {
  return Find<decltype(FakeCudaFailed)>(handle_, "FakeCudaFailed")();
}

int FakeCuda::Launch(CUstream_st* stream, std::function<int()> kernel) {
  using Kernel = std::function<int()>;
  auto* const data = new Kernel(std::move(kernel));
  const auto run = [](void* data) {
    const std::unique_ptr<Kernel> kernel(static_cast<Kernel*>(data));
    return (*kernel)();
  };
  const int error = Find<decltype(FakeCudaLaunch)>(handle_, "FakeCudaLaunch")(
      stream, run, data);
  if (error != 0) delete data;
  return error;
}

void FakeCuda::Delay(unsigned seed, int most_us) {
  Find<decltype(FakeCudaDelay)>(handle_, "FakeCudaDelay")(seed, most_us);
}

void FakeCuda::Hold(bool hold) {
  Find<decltype(FakeCudaHold)>(handle_, "FakeCudaHold")(hold);
}

void FakeCuda::SetMachine(int devices, int driver_version,
                          int64_t memory_bytes) {
  Find<decltype(FakeCudaMachine)>(handle_, "FakeCudaMachine")(
      devices, driver_version, memory_bytes);
}

void FakeCuda::FailNccl(int rank, int code) {
  Find<decltype(FakeNcclError)>(handle_, "FakeNcclError")(rank, code);
}

void FakeCuda::OnNcclTouch(std::function<void()> touches) {
  const auto set = Find<decltype(FakeNcclTouches)>(handle_, "FakeNcclTouches");
  set(nullptr, nullptr);
  nccl_touches_ = std::move(touches);
  if (nccl_touches_ == nullptr) return;
  set([](void* data) { (*static_cast<std::function<void()>*>(data))(); },
      &nccl_touches_);
}

int FakeCuda::alive() const {
  return Find<decltype(FakeCudaAlive)>(handle_, "FakeCudaAlive")();
}

}  // namespace lockstep
