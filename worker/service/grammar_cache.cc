#include "worker/service/grammar_cache.h"

#include <absl/base/thread_annotations.h>
#include <absl/strings/str_cat.h>
#include <absl/synchronization/mutex.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "common/error_reason.h"
#include "common/status_macros.h"
#include "worker/core/sequence.h"

namespace lockstep {
namespace {

absl::Status TooMany(size_t number) {
  return MakeError(
      ErrorReason::kOverloaded,
      absl::StrCat(number,
                   " grammars are being compiled, as many as may be at a "
                   "time; try again later."),
      {.metadata = {}, .retry_delay = absl::Milliseconds(100)});
}

absl::Status TooLong(std::chrono::milliseconds timeout) {
  return MakeError(ErrorReason::kOverloaded,
                   absl::StrCat("the grammar is not compiled after ",
                                timeout.count(), " ms; try again later."),
                   {.metadata = {}, .retry_delay = absl::Seconds(1)});
}

}  // namespace

// Each waiter is told once: it is in the list of its entry until then. What
// calls back from other threads holds the state.
class GrammarCache::State : public std::enable_shared_from_this<State> {
 public:
  State(GrammarStore* store, RequestInbox* inbox, TimerThread* timers,
        const Options& options)
      : store_(store), options_(options), inbox_(inbox), timers_(timers) {}

  void Get(const v1::Grammar& grammar, Done done) {
    std::string key = grammar.SerializeAsString();
    absl::ReleasableMutexLock lock(&mutex_);
    if (!closed_.ok()) {
      const absl::Status why = closed_;
      lock.Release();
      return done(why);
    }
    auto at = entries_.find(key);
    if (at == entries_.end()) {
      if (num_compiling_ >= options_.max_compiling) {
        lock.Release();
        return done(TooMany(options_.max_compiling));
      }
      if (absl::Status room = inbox_->CheckGrammarRoom(grammar); !room.ok()) {
        lock.Release();
        return done(std::move(room));
      }
      at = Add(std::move(key), grammar);
    }
    Entry& entry = at->second;
    if (entry.is_compiled) {
      Lease lease = MakeLease(at->first, entry);
      lock.Release();
      return done(std::move(lease));
    }
    const uint64_t id = ++last_waiter_;
    entry.waiters.emplace(
        id, Waiter{std::move(done), timers_->At(TimerThread::Clock::now() +
                                                    options_.timeout,
                                                [self = shared_from_this(),
                                                 key = at->first, id] {
                                                  self->GiveUp(key, id);
                                                })});
  }

  void Close(const absl::Status& why) {
    std::vector<Done> told;
    {
      absl::MutexLock lock(&mutex_);
      if (!closed_.ok()) return;
      closed_ = why;
      for (auto& [key, entry] : entries_) {
        for (auto& [id, waiter] : entry.waiters) {
          timers_->Cancel(waiter.timer);
          told.push_back(std::move(waiter.done));
        }
        entry.waiters.clear();
      }
      inbox_ = nullptr;
      timers_ = nullptr;
    }
    for (const Done& done : told) done(why);
  }

  absl::StatusOr<GrammarMatcher> Begin(const Lease& lease) {
    return store_->Begin(*lease);
  }

  Sizes sizes() {
    absl::MutexLock lock(&mutex_);
    return {.idle = idle_.size(),
            .leased = entries_.size() - idle_.size() - num_compiling_,
            .compiling = num_compiling_};
  }

 private:
  struct Waiter {
    Done done;
    uint64_t timer;
  };

  struct Entry {
    uint64_t number = 0;
    bool is_compiled = false;
    std::map<uint64_t, Waiter> waiters = {};  // in the order they came
    size_t num_leases = 0;
    uint64_t last_use = 0;
  };

  using Entries = std::map<std::string, Entry>;

  Entries::iterator Add(std::string key, const v1::Grammar& grammar)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const uint64_t number = ++last_number_;
    ++num_compiling_;
    const auto at =
        entries_.emplace(std::move(key), Entry{.number = number}).first;
    // The store first: this rank's step thread, told by the inbox, asks it for
    // the same, and only the first to ask hears what came of it.
    store_->Prepare(number, grammar,
                    [self = shared_from_this(),
                     key = at->first](const absl::Status& status) {
                      self->OnCompiled(key, status);
                    });
    inbox_->Prepare(number, grammar);
    return at;
  }

  void OnCompiled(const std::string& key, const absl::Status& status)
      ABSL_LOCKS_EXCLUDED(mutex_) {
    std::vector<std::pair<Done, Lease>> told;
    {
      absl::MutexLock lock(&mutex_);
      Entry& entry = entries_.at(key);
      --num_compiling_;
      entry.is_compiled = status.ok();
      for (auto& [id, waiter] : entry.waiters) {
        timers_->Cancel(waiter.timer);
        told.emplace_back(std::move(waiter.done),
                          status.ok() ? MakeLease(key, entry) : nullptr);
      }
      entry.waiters.clear();
      if (!status.ok()) {
        Drop(key);
      } else if (entry.num_leases == 0) {
        Idle(key, entry);
      }
    }
    for (auto& [done, lease] : told) {
      if (status.ok()) {
        done(std::move(lease));
      } else {
        done(status);
      }
    }
  }

  // The compilation goes on, for those that ask later.
  void GiveUp(const std::string& key, uint64_t id)
      ABSL_LOCKS_EXCLUDED(mutex_) {
    Done done;
    {
      absl::MutexLock lock(&mutex_);
      const auto at = entries_.find(key);
      if (at == entries_.end()) return;
      auto waiter = at->second.waiters.extract(id);
      if (waiter.empty()) return;
      done = std::move(waiter.mapped().done);
    }
    done(TooLong(options_.timeout));
  }

  Lease MakeLease(const std::string& key, Entry& entry)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (entry.num_leases++ == 0) idle_.erase(entry.last_use);
    return Lease(new uint64_t(entry.number),
                 [self = shared_from_this(), key](const uint64_t* number) {
                   delete number;
                   self->EndLease(key);
                 });
  }

  void EndLease(const std::string& key) ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    Entry& entry = entries_.at(key);
    if (--entry.num_leases == 0) Idle(key, entry);
  }

  void Idle(const std::string& key, Entry& entry)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    entry.last_use = ++num_uses_;
    idle_.emplace(entry.last_use, key);
    if (idle_.size() > options_.max_idle) Drop(idle_.begin()->second);
  }

  void Drop(const std::string& key) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const auto at = entries_.find(key);
    const uint64_t number = at->second.number;
    // Where it tells nobody, this rank's own store is not told either.
    if (inbox_ != nullptr && !inbox_->ReleaseGrammar(number)) {
      store_->Release(number);
    }
    idle_.erase(at->second.last_use);
    entries_.erase(at);
  }

  GrammarStore* const store_;
  const Options options_;

  // Held from numbering to the inbox, so that no request comes before its
  // grammar.
  absl::Mutex mutex_;
  // Null once the cache is closed.
  RequestInbox* inbox_ ABSL_GUARDED_BY(mutex_);
  TimerThread* timers_ ABSL_GUARDED_BY(mutex_);
  absl::Status closed_ ABSL_GUARDED_BY(mutex_);
  Entries entries_ ABSL_GUARDED_BY(mutex_);  // by serialized grammar
  // Of those without leases: by last use, which counts up from 1.
  std::map<uint64_t, std::string> idle_ ABSL_GUARDED_BY(mutex_);
  uint64_t last_number_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t last_waiter_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t num_uses_ ABSL_GUARDED_BY(mutex_) = 0;
  size_t num_compiling_ ABSL_GUARDED_BY(mutex_) = 0;
};

GrammarCache::GrammarCache(GrammarStore* store, RequestInbox* inbox,
                           TimerThread* timers, const Options& options)
    : state_(std::make_shared<State>(store, inbox, timers, options)) {}

GrammarCache::~GrammarCache() {
  Close(MakeError(ErrorReason::kWorkerDraining,
                  "the worker has shut down; ask another one."));
}

void GrammarCache::Close(const absl::Status& why) { state_->Close(why); }

void GrammarCache::Get(const v1::Grammar& grammar, Done done) {
  state_->Get(grammar, std::move(done));
}

absl::Status GrammarCache::CheckResume(const Lease& lease,
                                       const v1::AddRequest& request) {
  for (uint32_t choice = 0; choice < request.sampling().n(); ++choice) {
    const absl::Span<const uint32_t> output = ResumeTokens(request, choice);
    if (output.empty() || HasEnded(request, choice)) continue;
    LOCKSTEP_ASSIGN_OR_RETURN(GrammarMatcher matcher, state_->Begin(lease));
    LOCKSTEP_ASSIGN_OR_RETURN(const size_t consumed, matcher.Consume(output));
    if (consumed == output.size()) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "resume_token_ids has ", output[consumed], " as token ", consumed,
        " of choice ", choice, ", which the grammar does not allow there."));
  }
  return absl::OkStatus();
}

GrammarCache::Sizes GrammarCache::sizes() const { return state_->sizes(); }

}  // namespace lockstep
