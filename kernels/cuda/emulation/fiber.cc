#include "kernels/cuda/emulation/fiber.h"

#include <absl/base/config.h>

#include <cstdint>
#include <cstdlib>

#ifdef ABSL_HAVE_ADDRESS_SANITIZER
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#ifdef LOCKSTEP_TSAN
#include <sanitizer/tsan_interface.h>
extern "C" {
void AnnotateIgnoreReadsBegin(const char* file, int line);
void AnnotateIgnoreReadsEnd(const char* file, int line);
void AnnotateIgnoreWritesBegin(const char* file, int line);
void AnnotateIgnoreWritesEnd(const char* file, int line);
}
#endif

// Pushes the registers that a call keeps, stores the stack's top in *rdi, takes
// rsi for it and pops the registers that lie there.
asm(R"(
.text
.hidden lockstep_switch_stack
.globl lockstep_switch_stack
.type lockstep_switch_stack, @function
lockstep_switch_stack:
  push %rbp
  push %rbx
  push %r12
  push %r13
  push %r14
  push %r15
  mov %rsp, (%rdi)
  mov %rsi, %rsp
  pop %r15
  pop %r14
  pop %r13
  pop %r12
  pop %rbx
  pop %rbp
  ret
.size lockstep_switch_stack, . - lockstep_switch_stack
)");

extern "C" void lockstep_switch_stack(void** from, void* to);

namespace lockstep::emulation {
namespace {

constexpr int kKeptRegisters = 6;

thread_local Fiber* entering = nullptr;

// The sanitizers' calls, or nothing.
void StartSwitch([[maybe_unused]] void** fake_stack,
                 [[maybe_unused]] const void* bottom,
                 [[maybe_unused]] size_t bytes) {
#ifdef ABSL_HAVE_ADDRESS_SANITIZER
  __sanitizer_start_switch_fiber(fake_stack, bottom, bytes);
#endif
}

void FinishSwitch([[maybe_unused]] void* fake_stack,
                  [[maybe_unused]] const void** bottom,
                  [[maybe_unused]] size_t* bytes) {
#ifdef ABSL_HAVE_ADDRESS_SANITIZER
  __sanitizer_finish_switch_fiber(fake_stack, bottom, bytes);
#endif
}

void Unpoison([[maybe_unused]] void* bottom, [[maybe_unused]] size_t bytes) {
#ifdef ABSL_HAVE_ADDRESS_SANITIZER
  __asan_unpoison_memory_region(bottom, bytes);
#endif
}

// Inlined, as what ThreadSanitizer does at a function's end would else happen
// on the other fiber than what it does at its beginning.
[[gnu::always_inline]] inline void SwitchTsan([[maybe_unused]] void* to) {
#ifdef LOCKSTEP_TSAN
  __tsan_switch_to_fiber(to, __tsan_switch_to_fiber_no_sync);
#endif
}

}  // namespace

Fiber::Fiber() : stack_(new std::byte[kStackBytes]) {
#ifdef LOCKSTEP_TSAN
  tsan_own_ = __tsan_create_fiber(0);
#endif
}

Fiber::~Fiber() {
  Unpoison(Bottom(), kStackBytes);
#ifdef LOCKSTEP_TSAN
  __tsan_destroy_fiber(tsan_own_);
#endif
}

void Fiber::Start(void (*body)(void*), void* argument) {
#ifdef LOCKSTEP_TSAN
  if (!done_) {
    __tsan_destroy_fiber(tsan_own_);
    tsan_own_ = __tsan_create_fiber(0);
  }
#endif
  body_ = body;
  argument_ = argument;
  done_ = false;
  own_fake_stack_ = nullptr;
  Unpoison(Bottom(), kStackBytes);
  // As if Enter had been called and had switched away at once: its address,
  // 16-byte aligned, above the kept registers.
  const auto end = reinterpret_cast<uintptr_t>(Bottom()) + kStackBytes;
  auto* top = reinterpret_cast<void**>((end & ~uintptr_t{15}) - 32);
  *top = reinterpret_cast<void*>(&Fiber::Enter);
  for (int i = 0; i < kKeptRegisters; ++i) *--top = nullptr;
  own_top_ = top;
}

void Fiber::Resume() {
  entering = this;
#ifdef LOCKSTEP_TSAN
  tsan_caller_ = __tsan_get_current_fiber();
#endif
  void* fake_stack = nullptr;
  StartSwitch(&fake_stack, Bottom(), kStackBytes);
  SwitchTsan(tsan_own_);
  lockstep_switch_stack(&caller_top_, own_top_);
  FinishSwitch(fake_stack, nullptr, nullptr);
}

void Fiber::Yield() {
  StartSwitch(done_ ? nullptr : &own_fake_stack_, caller_bottom_,
              caller_bytes_);
  SwitchTsan(tsan_caller_);
  lockstep_switch_stack(&own_top_, caller_top_);
  FinishSwitch(own_fake_stack_, &caller_bottom_, &caller_bytes_);
}

void Fiber::Enter() { entering->Run(); }

void Fiber::Run() {
  FinishSwitch(nullptr, &caller_bottom_, &caller_bytes_);
  body_(argument_);
  done_ = true;
  Yield();
  std::abort();  // nobody resumes what is done
}

void TsanRelease([[maybe_unused]] void* address) {
#ifdef LOCKSTEP_TSAN
  __tsan_release(address);
#endif
}

void TsanAcquire([[maybe_unused]] void* address) {
#ifdef LOCKSTEP_TSAN
  __tsan_acquire(address);
#endif
}

TsanIgnore::TsanIgnore() {
#ifdef LOCKSTEP_TSAN
  AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
  AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
#endif
}

TsanIgnore::~TsanIgnore() {
#ifdef LOCKSTEP_TSAN
  AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
  AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
#endif
}

}  // namespace lockstep::emulation
