#pragma once

#include <cstddef>
#include <memory>

namespace lockstep::emulation {

// A function on a stack of its own, which the thread that owns it enters and
// leaves by hand: a device thread of the emulation.
//
//   Fiber fiber;
//   fiber.Start(&Body, &argument);
//   while (!fiber.done()) fiber.Resume();  // Body calls fiber.Yield()
//
// One thread uses it. No exception may leave the function. A fiber that is
// started again, or destroyed, before its end is left where it is: what lies on
// its stack is not destroyed. x86-64 only.
//
// AddressSanitizer knows its stack. ThreadSanitizer takes each fiber for a
// thread, and a switch orders nothing: what two fibers do to the same memory is
// a race unless TsanRelease and TsanAcquire come between.
class Fiber {
 public:
  Fiber();
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  void Start(void (*body)(void*), void* argument);

  // Runs the function until it yields or ends. REQUIRES: started, not done.
  void Resume();

  // Back to whoever resumed. REQUIRES: called on this fiber.
  void Yield();

  bool done() const { return done_; }

 private:
  static constexpr size_t kStackBytes = 64 * 1024;

  static void Enter();
  void Run();

  void* Bottom() { return stack_.get(); }

  std::unique_ptr<std::byte[]> stack_;
  void (*body_)(void*) = nullptr;
  void* argument_ = nullptr;
  bool done_ = true;
  void* own_top_ = nullptr;     // of the stack while the fiber does not run
  void* caller_top_ = nullptr;  // and of the caller's while it does

  // What the sanitizers hold.
  void* own_fake_stack_ = nullptr;
  const void* caller_bottom_ = nullptr;
  size_t caller_bytes_ = 0;
  void* tsan_own_ = nullptr;
  void* tsan_caller_ = nullptr;
};

// What happened before a release of an address has happened after an acquire
// of it, as ThreadSanitizer sees it.
void TsanRelease(void* address);
void TsanAcquire(void* address);

// Within its scope ThreadSanitizer looks at nothing: for calls of libraries
// that it sees although it does not see the emulation. No fiber is left
// meanwhile.
class TsanIgnore {
 public:
  TsanIgnore();
  ~TsanIgnore();
  TsanIgnore(const TsanIgnore&) = delete;
  TsanIgnore& operator=(const TsanIgnore&) = delete;
};

}  // namespace lockstep::emulation
