#pragma once

#include <absl/base/thread_annotations.h>
#include <absl/status/statusor.h>
#include <absl/synchronization/mutex.h>
#include <absl/time/time.h>

#include <utility>

namespace lockstep {

// Bounds how many requests the gateway holds at once, whatever they wait for,
// and lets them run out.
//
//   LOCKSTEP_ASSIGN_OR_RETURN(Admission::Ticket ticket, admission.Admit());
//
// Any thread.
class Admission {
 public:
  // A place among the requests in flight, given back by the destructor. Must
  // not outlive its Admission.
  class Ticket {
   public:
    Ticket() = default;
    Ticket(Ticket&& other)
        : admission_(std::exchange(other.admission_, nullptr)) {}
    Ticket& operator=(Ticket&& other) {
      std::swap(admission_, other.admission_);
      return *this;
    }
    ~Ticket() {
      if (admission_ != nullptr) admission_->Release();
    }

   private:
    friend class Admission;
    explicit Ticket(Admission* admission) : admission_(admission) {}

    Admission* admission_ = nullptr;
  };

  explicit Admission(int limit) : limit_(limit) {}

  // RESOURCE_EXHAUSTED when the limit is reached, UNAVAILABLE after Close.
  absl::StatusOr<Ticket> Admit();

  // Admits nobody any more.
  void Close();

  // Waits until nothing is in flight; false if that takes longer.
  bool AwaitIdle(absl::Duration timeout);

  int in_flight() const;

 private:
  void Release();
  bool IsIdle() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return in_flight_ == 0;
  }

  const int limit_;
  mutable absl::Mutex mutex_;
  int in_flight_ ABSL_GUARDED_BY(mutex_) = 0;
  bool is_closed_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace lockstep
