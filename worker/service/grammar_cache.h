#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "common/timer_thread.h"
#include "proto/grammar.pb.h"
#include "proto/group.pb.h"
#include "worker/grammar/grammar_store.h"
#include "worker/group/request_inbox.h"

namespace lockstep {

// The leader's word on grammars: numbers them, has all ranks compile them, and
// says which are good. A grammar that many requests have is compiled once.
//
//   cache.Get(grammar, [](absl::StatusOr<GrammarCache::Lease> lease) {
//     …submit a request with the grammar *lease, and hold the lease…
//   });
//
// A number stays good while someone has a lease of it; of those that nobody
// has, the max_idle used last are kept. All ranks are told to compile it when
// it is first asked for, and to forget it when it is dropped; in between come
// the requests that name it. Any thread.
class GrammarCache {
 public:
  // The grammar's number. May outlive the cache.
  using Lease = std::shared_ptr<const uint64_t>;
  using Done = std::function<void(absl::StatusOr<Lease>)>;

  struct Options {
    size_t max_idle = 128;
    // At a time; more are refused.
    size_t max_compiling = 64;
    // For which a request waits. Work is limited as well: this is for a host
    // that has no time for it.
    std::chrono::milliseconds timeout{3000};
  };

  // All must outlive this; `store` also what it compiles for it.
  GrammarCache(GrammarStore* store, RequestInbox* inbox, TimerThread* timers,
               const Options& options);
  ~GrammarCache();  // closes it

  // Ends the waiting with `why`, and refuses whoever asks from now on. What is
  // being compiled, and who has a lease, may outlive inbox and timers: nothing
  // uses them any more when this returns. Calls of `done` that have begun go
  // on.
  void Close(const absl::Status& why);

  // `done` is called once, on this thread or another. INVALID_ARGUMENT says
  // what is wrong with the grammar, RESOURCE_EXHAUSTED that it takes too long,
  // that too many are being compiled, or too large ones wait for a step.
  void Get(const v1::Grammar& grammar, Done done);

  // INVALID_ARGUMENT where the grammar does not allow what the request's
  // choices have so far.
  absl::Status CheckResume(const Lease& lease, const v1::AddRequest& request);

  struct Sizes {
    size_t idle = 0;
    size_t leased = 0;
    size_t compiling = 0;
  };
  Sizes sizes() const;

 private:
  class State;
  const std::shared_ptr<State> state_;
};

}  // namespace lockstep
