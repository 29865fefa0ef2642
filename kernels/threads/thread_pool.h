#pragma once

#include <absl/functional/function_ref.h>

#include <cstdint>
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
// Run and For return when the work is done; they are called by one thread at a
// time and do not nest. Nothing is allocated. Between two calls that come close
// together the workers spin, after about a millisecond they sleep. Where
// threads outnumber cores (`oversubscribed`) they sleep at once.
class ThreadPool {
 public:
  struct Options {
    int num_threads = 1;
    // Worker i is pinned to core first_core + i if the process may use it; the
    // calling thread is left where it is. -1: do not pin.
    int first_core = -1;
    bool oversubscribed = false;  // more runnable threads than cores
  };

  explicit ThreadPool(const Options& options);
  ~ThreadPool();

  int size() const;

  // fn(worker) on each of the `size()` workers.
  void Run(absl::FunctionRef<void(int worker)> fn);

  // fn(begin, end) over disjoint ranges that cover [0, items), each beginning
  // at a multiple of `grain` and, but for the last, a multiple of it long.
  // Which worker takes which range is not fixed, so a result must not depend on
  // it; a worker that gets no core takes none.
  void For(int64_t items, int64_t grain,
           absl::FunctionRef<void(int64_t begin, int64_t end)> fn);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lockstep::kernels
