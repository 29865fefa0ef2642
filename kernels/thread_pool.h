#pragma once

#include <cstdint>
#include <functional>
#include <memory>

namespace lockstep::kernels {

// The threads of one rank's engine. The calling thread is worker 0; the others
// are owned here, pinned to a core each when there are cores enough, and joined
// by the destructor.
//
//   ThreadPool pool({.num_threads = 2, .first_core = 0});
//   pool.Run([&](int worker) { … });            // once on every worker
//   pool.For(rows, 1, [&](int64_t begin, int64_t end) { … });
//
// Run and For return when all workers are done; they are called by one thread
// at a time and do not nest. Between two calls that come close together the
// workers spin, after about a millisecond they sleep. Where threads outnumber
// cores (`oversubscribed`) they sleep at once.
class ThreadPool {
 public:
  struct Options {
    int num_threads = 1;
    int first_core = -1;          // -1: do not pin
    bool oversubscribed = false;  // more runnable threads than cores
  };

  explicit ThreadPool(const Options& options);
  ~ThreadPool();

  int size() const;

  // fn(worker) on each of the `size()` workers.
  void Run(const std::function<void(int worker)>& fn);

  // fn(begin, end) over disjoint ranges that cover [0, items), each a multiple
  // of `grain` but for the last. Which worker takes which range is not fixed,
  // so a result must not depend on it.
  void For(int64_t items, int64_t grain,
           const std::function<void(int64_t begin, int64_t end)>& fn);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lockstep::kernels
