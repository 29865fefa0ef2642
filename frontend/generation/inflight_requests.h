#pragma once

#include <absl/base/thread_annotations.h>
#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <absl/synchronization/mutex.h>
#include <absl/time/time.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <utility>

namespace lockstep {

// The requests that the gateway holds, whatever they wait for: bounds their
// number, their bytes and the tokens of their prompts, lets them run out or
// ends them.
//
//   LOCKSTEP_ASSIGN_OR_RETURN(InflightRequests::Ticket ticket,
//                             inflight.Admit(request.Length()));
//   LOCKSTEP_RETURN_IF_ERROR(ticket.AddPromptTokens(ids.size()));
//
// Any thread.
class InflightRequests {
 private:
  struct Request {
    size_t bytes;
    int64_t prompt_tokens;
    std::function<void(const absl::Status& why)> end;
  };

 public:
  struct Limits {
    int requests = 1024;
    size_t bytes = size_t{256} << 20;
    int64_t prompt_tokens = int64_t{4} << 20;
  };

  // A place among the requests in flight, given back by the destructor. Must
  // not outlive its InflightRequests.
  class Ticket {
   public:
    Ticket() = default;
    Ticket(Ticket&& other)
        : owner_(std::exchange(other.owner_, nullptr)), at_(other.at_) {}
    Ticket& operator=(Ticket&& other) {
      std::swap(owner_, other.owner_);
      std::swap(at_, other.at_);
      return *this;
    }
    ~Ticket() {
      if (owner_ != nullptr) owner_->Release(at_);
    }

    // Of its request, once they are known. RESOURCE_EXHAUSTED when the limit is
    // reached; whoever is alone is not refused.
    absl::Status AddPromptTokens(int64_t tokens) {
      return owner_->AddPromptTokens(at_, tokens);
    }

   private:
    friend class InflightRequests;
    Ticket(InflightRequests* owner, std::list<Request>::iterator at)
        : owner_(owner), at_(at) {}

    InflightRequests* owner_ = nullptr;
    std::list<Request>::iterator at_;
  };

  explicit InflightRequests(const Limits& limits) : limits_(limits) {}

  // RESOURCE_EXHAUSTED when a limit is reached, UNAVAILABLE after Close. `end`
  // is EndAll's to call, with the lock held: it does not wait, and the ticket
  // is not given back within it.
  absl::StatusOr<Ticket> Admit(
      size_t bytes, std::function<void(const absl::Status& why)> end = nullptr);

  // Admits nobody any more.
  void Close();

  // Calls the `end` of all that have one.
  void EndAll(const absl::Status& why);

  // Waits until nothing is in flight; false if that takes longer.
  bool AwaitIdle(absl::Duration timeout);

  int number() const;
  int64_t prompt_tokens() const;
  const Limits& limits() const { return limits_; }

 private:
  absl::Status AddPromptTokens(std::list<Request>::iterator at, int64_t tokens);
  void Release(std::list<Request>::iterator at);
  bool IsIdle() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return requests_.empty();
  }

  const Limits limits_;
  mutable absl::Mutex mutex_;
  std::list<Request> requests_ ABSL_GUARDED_BY(mutex_);
  size_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t prompt_tokens_ ABSL_GUARDED_BY(mutex_) = 0;
  bool is_closed_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace lockstep
