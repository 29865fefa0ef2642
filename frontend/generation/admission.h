#pragma once

#include <absl/status/statusor.h>

#include <atomic>
#include <utility>

namespace lockstep {

// Bounds how many requests the gateway holds at once, whatever they wait for.
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
    Ticket(Ticket&& other) : in_flight_(std::exchange(other.in_flight_, {})) {}
    Ticket& operator=(Ticket&& other) {
      std::swap(in_flight_, other.in_flight_);
      return *this;
    }
    ~Ticket() {
      if (in_flight_ != nullptr) in_flight_->fetch_sub(1);
    }

   private:
    friend class Admission;
    explicit Ticket(std::atomic<int>* in_flight) : in_flight_(in_flight) {}

    std::atomic<int>* in_flight_ = nullptr;
  };

  explicit Admission(int limit) : limit_(limit) {}

  // RESOURCE_EXHAUSTED when the limit is reached.
  absl::StatusOr<Ticket> Admit();

  int in_flight() const { return in_flight_.load(); }

 private:
  const int limit_;
  std::atomic<int> in_flight_{0};
};

}  // namespace lockstep
