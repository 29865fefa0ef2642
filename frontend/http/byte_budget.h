#pragma once

#include <atomic>
#include <cstddef>

namespace lockstep::http {

// A bound on bytes that many hold together. Any thread.
//
//   if (!budget.TryTake(4096)) …refuse…
//   budget.Give(4096);
class ByteBudget {
 public:
  explicit ByteBudget(size_t bytes) : left_(bytes) {}

  bool TryTake(size_t bytes) {
    size_t left = left_.load(std::memory_order_relaxed);
    do {
      if (bytes > left) return false;
    } while (!left_.compare_exchange_weak(left, left - bytes,
                                          std::memory_order_relaxed));
    return true;
  }

  void Give(size_t bytes) { left_.fetch_add(bytes, std::memory_order_relaxed); }

 private:
  std::atomic<size_t> left_;
};

}  // namespace lockstep::http
