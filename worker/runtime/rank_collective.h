#pragma once

#include <absl/base/thread_annotations.h>
#include <absl/status/status.h>
#include <absl/strings/string_view.h>
#include <absl/synchronization/mutex.h>
#include <absl/time/time.h>

#include <memory>
#include <optional>
#include <string>

#include "proto/group.pb.h"
#include "worker/collectives/collective.h"
#include "worker/collectives/collective_kind.h"

namespace lockstep {

// The collective of one rank, whatever kind it is, from the address that the
// rendezvous passes on to the first exchange.
//
//   RankCollective collective(options);
//   LOCKSTEP_RETURN_IF_ERROR(collective.Open(host));
//   …rendezvous: collective.address() goes out, `others` comes in…
//   LOCKSTEP_RETURN_IF_ERROR(collective.Meet(others, timeout));
//   collective.get()->AllReduceSum(…);
//
// One thread, but for Abort.
class RankCollective {
 public:
  struct Options {
    CollectiveKind kind = CollectiveKind::kSingle;
    int rank = 0;
    int size = 1;
  };

  explicit RankCollective(const Options& options) : options_(options) {}

  // Makes what other ranks reach. `host` is an address of this host that they
  // can reach; shared memory needs none. May start a thread.
  absl::Status Open(const std::string& host);

  // After Open.
  v1::CollectiveAddress address() const { return address_; }

  // Joins the other ranks and exchanges known values with them: see
  // TestCollective. After it, get() has a collective that works.
  absl::Status Meet(const v1::CollectiveAddress& others,
                    absl::Duration timeout);

  Collective* get() { return collective_.get(); }

  // See Collective::Abort. Legal from the beginning, at any time.
  void Abort(absl::string_view reason);

 private:
  absl::Status Join(const v1::CollectiveAddress& others);
  void Set(std::unique_ptr<Collective> collective);

  const Options options_;
  v1::CollectiveAddress address_;
  // Written under mutex_; its calls are made without.
  std::unique_ptr<Collective> collective_;

  absl::Mutex mutex_;
  std::optional<std::string> aborted_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace lockstep
