// For ThreadSanitizer only: Debian's Abseil is built without it, so that it
// sees none of what absl::Mutex and absl::Notification order. These definitions
// come before the library's when the program is linked, say what the object
// does, and call the library's. See build:tsan in .bazelrc.

#include <absl/synchronization/mutex.h>
#include <absl/synchronization/notification.h>
#include <dlfcn.h>
#include <sanitizer/tsan_interface.h>
#include <unistd.h>

// gRPC's is without it, too: how it hands data from one thread to another is
// not seen.
extern "C" const char* __tsan_default_suppressions() {
  return "race:libgrpc++.so\n"
         "race:libgrpc.so\n";
}

namespace absl {
ABSL_NAMESPACE_BEGIN
namespace {

// The library's own definition of a member function with this mangled name.
template <typename Result, typename... Args>
Result CallLibrary(const char* name, Args... args) {
  using Function = Result (*)(Args...);
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name))(args...);
}

// A condition is evaluated inside the library, by whoever holds the mutex.
struct SeenCondition {
  Mutex* mutex;
  const Condition* condition;

  static bool Eval(SeenCondition* seen) {
    __tsan_acquire(seen->mutex);
    const bool met = seen->condition->Eval();
    __tsan_release(seen->mutex);
    return met;
  }
};

template <typename Limit>
bool WaitFor(Mutex* mutex, const Condition& condition, Limit limit,
             const char* name) {
  SeenCondition seen = {mutex, &condition};
  const Condition wrapped(&SeenCondition::Eval, &seen);
  __tsan_release(mutex);
  const bool met = CallLibrary<bool, Mutex*, const Condition&, Limit>(
      name, mutex, wrapped, limit);
  __tsan_acquire(mutex);
  return met;
}

// It runs the handler of a signal where the thread calls what it knows, and it
// knows nothing of the library's waits: those without a limit take turns.
constexpr Duration kTurn = Milliseconds(50);

void RunSignalHandlers() { usleep(1); }

}  // namespace

void Mutex::Lock() {
  CallLibrary<void, Mutex*>("_ZN4absl7debian35Mutex4LockEv", this);
  __tsan_acquire(this);
}

void Mutex::Unlock() {
  __tsan_release(this);
  CallLibrary<void, Mutex*>("_ZN4absl7debian35Mutex6UnlockEv", this);
}

bool Mutex::TryLock() {
  const bool locked =
      CallLibrary<bool, Mutex*>("_ZN4absl7debian35Mutex7TryLockEv", this);
  if (locked) __tsan_acquire(this);
  return locked;
}

void Mutex::ReaderLock() {
  CallLibrary<void, Mutex*>("_ZN4absl7debian35Mutex10ReaderLockEv", this);
  __tsan_acquire(this);
}

void Mutex::ReaderUnlock() {
  __tsan_release(this);
  CallLibrary<void, Mutex*>("_ZN4absl7debian35Mutex12ReaderUnlockEv", this);
}

void Mutex::Await(const Condition& condition) {
  while (!AwaitWithTimeout(condition, kTurn)) RunSignalHandlers();
}

void Mutex::LockWhen(const Condition& condition) {
  Lock();
  Await(condition);
}

bool Mutex::AwaitWithTimeout(const Condition& condition, Duration timeout) {
  return WaitFor(this, condition, timeout,
                 "_ZN4absl7debian35Mutex16AwaitWithTimeoutERKNS0_"
                 "9ConditionENS0_8DurationE");
}

bool Mutex::AwaitWithDeadline(const Condition& condition, Time deadline) {
  return WaitFor(this, condition, deadline,
                 "_ZN4absl7debian35Mutex17AwaitWithDeadlineERKNS0_"
                 "9ConditionENS0_4TimeE");
}

// May return early.
void CondVar::Wait(Mutex* mutex) {
  WaitWithTimeout(mutex, kTurn);
  RunSignalHandlers();
}

bool CondVar::WaitWithTimeout(Mutex* mutex, Duration timeout) {
  __tsan_release(mutex);
  const bool timed_out = CallLibrary<bool, CondVar*, Mutex*, Duration>(
      "_ZN4absl7debian37CondVar15WaitWithTimeoutEPNS0_5MutexENS0_8DurationE",
      this, mutex, timeout);
  __tsan_acquire(mutex);
  return timed_out;
}

// A waiter that comes late passes without the mutex.
void Notification::Notify() {
  __tsan_release(this);
  CallLibrary<void, Notification*>("_ZN4absl7debian312Notification6NotifyEv",
                                   this);
}

void Notification::WaitForNotification() const {
  while (!WaitForNotificationWithTimeout(kTurn)) RunSignalHandlers();
}

bool Notification::WaitForNotificationWithTimeout(Duration timeout) const {
  const bool notified = CallLibrary<bool, const Notification*, Duration>(
      "_ZNK4absl7debian312Notification30WaitForNotificationWithTimeoutENS0_"
      "8DurationE",
      this, timeout);
  if (notified) __tsan_acquire(const_cast<Notification*>(this));
  return notified;
}

ABSL_NAMESPACE_END
}  // namespace absl
