#pragma once

#include <absl/base/thread_annotations.h>
#include <absl/status/statusor.h>
#include <absl/synchronization/mutex.h>
#include <absl/time/time.h>
#include <absl/types/span.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/security/grpc_credentials.h"
#include "common/timer_thread.h"
#include "frontend/routing/balancer.h"
#include "frontend/routing/group_waits.h"
#include "frontend/routing/load_watch.h"
#include "frontend/routing/policy/routing_policy.h"
#include "frontend/routing/resilience/retry_budget.h"
#include "frontend/routing/resilience/retry_plan.h"
#include "frontend/routing/resilience/silence_watch.h"
#include "frontend/routing/routing_clock.h"
#include "frontend/routing/served_model.h"
#include "frontend/routing/worker_client.h"
#include "frontend/routing/worker_monitor.h"

namespace lockstep {

struct GroupSetOptions {
  TokenizerIdentity tokenizer = {};
  Balancer::Options balancer = {};
  RetryPlan::Options retry = {};
  RetryBudget::Options retry_budget = {};
  SilenceWatch::Limits silence = {};
  absl::Duration request_timeout = absl::Minutes(30);
  // A group whose last report of its load is older is not ready.
  absl::Duration unready_after = absl::Seconds(10);
  ClientTls tls = {};  // towards the workers
};

// What routing has done so far; each counts up.
struct RoutingCounters {
  std::atomic<uint64_t> retries = 0;          // before a first token
  std::atomic<uint64_t> refused_retries = 0;  // the budget was used up
  std::atomic<uint64_t> failovers = 0;        // after one
  std::atomic<uint64_t> lost_answers = 0;     // that no group went on with
  std::atomic<uint64_t> silent_groups = 0;    // attempts ended by a time-out
  std::atomic<uint64_t> group_waits = 0;      // as there was no group
};

// The worker groups that this gateway knows, and what each serves. A request
// goes to one that Pick chooses; RoutedCall sees it through.
//
//   GroupSet groups(options, std::move(policy));
//   groups.Start([&] { server.SetServing(groups.Model().ok()); });
//   groups.SetAddresses({"host:50052", "other:50052"});
//   LOCKSTEP_ASSIGN_OR_RETURN(ServedModel model, groups.Model());
//
// Where none is ready requests can wait for one, and are told when one is. The
// model served is that of the first group to be ready, for as long as any
// that is ready has its name; groups of other names get no requests. Groups
// that serve it with other bits (GiveTheSameBits) do, but do not go on with
// each other's answers. A group whose address is taken out gets no new requests
// and finishes those it has; so does one that has reported its load and does so
// no more, until it does.
//
// Start, SetAddresses and Stop are one thread's; the rest is any thread's.
class GroupSet {
 public:
  class Lease;

  struct Wish {
    RouteRequest route;
    int64_t sequences = 1;
    // As leases had them: a group that was away since is another.
    absl::Span<const std::shared_ptr<const ServedModel>> excluded = {};
    // Set: only groups that give the same bits as one that serves this.
    const ServedModel* continues = nullptr;
  };

  GroupSet(const GroupSetOptions& options,
           std::unique_ptr<RoutingPolicy> policy);
  ~GroupSet() { Stop(); }  // after the last lease
  GroupSet(const GroupSet&) = delete;
  GroupSet& operator=(const GroupSet&) = delete;

  // `on_change` is called, one call at a time, after Model() turned from ready
  // to not ready or back.
  void Start(std::function<void()> on_change);
  void SetAddresses(const std::vector<std::string>& addresses);
  // What is known stays as it is, and on_change is not called any more.
  void Stop();

  // UNAVAILABLE says what is amiss and names an address. Its context is the
  // shortest of the groups'.
  absl::StatusOr<ServedModel> Model() const;

  // None where no group that is ready fits.
  std::optional<Lease> Pick(const Wish& wish);
  // Whether there is one that fits, excluded or not.
  bool HasGroup(const ServedModel* continues = nullptr) const;

  // `call` is called once, on the thread "timers": when HasGroup may have
  // turned true, else at `until`. It can be ended before, by waits().End(id).
  uint64_t AwaitGroup(const ServedModel* continues, absl::Time until,
                      std::function<void()> call);
  // The same, of a request that is new: until Model() is ready, or has not been
  // for as long as requests wait.
  uint64_t AwaitModel(std::function<void()> call);
  // From here on no request waits whose answer has not begun: `why` is what
  // Model() says to it where there is none.
  void EndWaits(const absl::Status& why);
  bool new_requests_wait() const;
  GroupWaits& waits() { return waits_; }
  const GroupWaits& waits() const { return waits_; }

  int num_ready() const;

  struct GroupStatus {
    std::string address;
    bool is_ready = false;
    Balancer::Status balance;
  };
  std::vector<GroupStatus> statuses() const;

  // Of a request, before it is first sent; of one more try before its first
  // token, which may be refused.
  void OnRequest();
  bool TakeRetry();

  const GroupSetOptions& options() const { return options_; }
  TimerThread& timers() { return timers_; }
  RoutingCounters& counters() { return counters_; }
  const RoutingCounters& counters() const { return counters_; }

 private:
  struct Member {
    Member(const std::string& address, const ClientTls& tls)
        : client(std::make_shared<WorkerClient>(address, tls)) {}

    const std::shared_ptr<WorkerClient> client;
    std::unique_ptr<WorkerMonitor> monitor;
    std::unique_ptr<LoadWatch> load;
    std::shared_ptr<const ServedModel> model;  // while it says it is ready
    absl::Time reported_at = absl::InfiniteFuture();
    bool is_silent = false;  // for too long

    bool is_ready() const { return model != nullptr && !is_silent; }
  };

  void Add(const std::string& address);
  void Remove(const std::string& address);
  void OnMonitorChange(GroupId id, const WorkerMonitor& monitor);
  void OnLoad(GroupId id, const v1::Load& load);
  void LookForSilence();  // on the thread "timers"
  void TellChange();
  // Whether Model() turned.
  bool ChooseServed() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void WarnIfOther(const Member& member) const
      ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  bool Fits(const Member& member, const ServedModel* continues) const
      ABSL_SHARED_LOCKS_REQUIRED(mutex_);

  const GroupSetOptions options_;
  std::function<void()> on_change_;
  RoutingCounters counters_;
  absl::Mutex change_mutex_;              // held while on_change_ is called
  std::atomic<bool> is_stopped_ = false;  // set with it

  mutable absl::Mutex mutex_;
  Balancer balancer_ ABSL_GUARDED_BY(mutex_);
  RetryBudget budget_ ABSL_GUARDED_BY(mutex_);
  GroupId last_id_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<GroupId, std::unique_ptr<Member>> members_ ABSL_GUARDED_BY(mutex_);
  absl::Time looked_at_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
  std::optional<ServedModel> served_ ABSL_GUARDED_BY(mutex_);
  absl::Status why_no_waits_ ABSL_GUARDED_BY(mutex_);  // OK: they wait

  GroupWaits waits_{&timers_};
  TimerThread timers_;
};

// A request's place at a group. Any thread, one call at a time.
class GroupSet::Lease {
 public:
  Lease(Lease&& other) noexcept
      : set_(std::exchange(other.set_, nullptr)),
        client_(std::move(other.client_)),
        model_(std::move(other.model_)),
        share_(other.share_) {}
  Lease& operator=(Lease&&) = delete;
  ~Lease();

  WorkerClient& client() const { return *client_; }
  const std::shared_ptr<const ServedModel>& model() const { return model_; }

  // What becomes of it there.
  void OnAccepted();
  void OnToken();  // the first
  void OnFailure();

 private:
  friend class GroupSet;
  Lease(GroupSet* set, std::shared_ptr<WorkerClient> client,
        std::shared_ptr<const ServedModel> model, Balancer::Share share)
      : set_(set),
        client_(std::move(client)),
        model_(std::move(model)),
        share_(share) {}

  GroupSet* set_;
  std::shared_ptr<WorkerClient> client_;
  std::shared_ptr<const ServedModel> model_;
  Balancer::Share share_;
};

}  // namespace lockstep
