#pragma once

#include <cstdint>
#include <functional>
#include <string>

struct CUstream_st;

namespace lockstep {

// The fake driver of fake_cuda_driver.cc, with NCCL beside it, and how a test
// drives it: see fake_cuda_control.h. One at a time; its end undoes what was
// set.
//
//   FakeCuda fake;
//   auto driver = CudaDriver::Load(fake.library());
//   fake.Fail("cuMemAlloc_v2", /*nth=*/2, /*code=*/2);
class FakeCuda {
 public:
  FakeCuda();
  ~FakeCuda();
  FakeCuda(const FakeCuda&) = delete;
  FakeCuda& operator=(const FakeCuda&) = delete;

  const std::string& library() const { return library_; }

  void Fail(const std::string& call, int nth, int code);
  std::string failed() const;
  // The kernel returns 0, or the error that breaks the device.
  int Launch(CUstream_st* stream, std::function<int()> kernel);
  void Delay(unsigned seed, int most_us);
  void Hold(bool hold);
  void SetMachine(int devices, int driver_version, int64_t memory_bytes);
  void FailNccl(int rank, int code);
  // Until the next call of it, or the end; `touches` may be null.
  void OnNcclTouch(std::function<void()> touches);
  int alive() const;

 private:
  const std::string library_;
  void* const handle_;
  std::function<void()> nccl_touches_;
};

}  // namespace lockstep
