#pragma once

#include <absl/base/thread_annotations.h>
#include <absl/status/status.h>
#include <absl/synchronization/mutex.h>
#include <absl/time/time.h>

#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "proto/group.pb.h"

namespace lockstep {

// The one path on which a group ends when anything of it breaks: a lost
// connection, a collective, a digest, an engine. A group is either whole or
// gone, so the first cause is kept and told everywhere; what follows from it is
// not a second cause.
//
//   GroupFailure failure({.exit_within = absl::Milliseconds(2500)});
//   failure.OnFailure([&](const auto& cause) { collective->Abort(…); });
//   failure.Report({.rank = 1,
//                   .kind = v1::CONNECTION_LOST,
//                   .reason = "its connection was lost."});
//
// The first report runs the hooks in the order they were given. Then one line
// is written to the log, "the group failed: rank 1 failed first: …
// [CONNECTION_LOST]", on the thread "verdict": a log waits for its reader, and
// who reports, as an I/O thread does, has others to tell. From then on the
// process has `exit_within` to leave by itself; after that `last_resort` ends
// it. Any thread.
class GroupFailure {
 public:
  struct Cause {
    int rank = 0;  // that failed first
    v1::FailureKind kind = v1::FAILURE_KIND_UNSPECIFIED;
    std::string reason;  // one sentence, for people

    // "rank 1 failed first: …"
    std::string ToString() const;
  };

  struct Options {
    // With the time it takes to notice (see ConfigureSocket) less than 5 s.
    absl::Duration exit_within = absl::Milliseconds(2500);
    std::function<void()> last_resort;  // by default: leave with code 1
  };

  using Hook = std::function<void(const Cause&)>;

  explicit GroupFailure(Options options);
  ~GroupFailure();
  GroupFailure(const GroupFailure&) = delete;
  GroupFailure& operator=(const GroupFailure&) = delete;

  // Runs at the failure, on the thread that reports it; at once when that has
  // been. It must not block, nor log, and what it uses lives until Disarm.
  void OnFailure(Hook hook);

  // Runs after all hooks, and after that line, on the thread "verdict": it may
  // log. The same otherwise.
  void OnVerdict(Hook log);

  // Of a reason that is no line of text, or a very long one, is kept what is.
  void Report(Cause cause);

  // The same, but UNAVAILABLE may only follow from another rank's failure, as
  // that of an aborted collective does: it gives the news of that one `grace`
  // to arrive.
  void ReportError(int rank, v1::FailureKind kind, const absl::Status& error,
                   absl::Duration grace = absl::Seconds(1));

  // The first one; nothing while the group is whole.
  std::optional<Cause> cause() const;

  // While it lives, `say` is called when the process does not leave in time,
  // before it is ended, on the last resort's thread: by then the thread whose
  // part it would be may hang.
  class LastWords {
   public:
    LastWords(GroupFailure* failure, std::function<void()> say);
    ~LastWords();
    LastWords(const LastWords&) = delete;
    LastWords& operator=(const LastWords&) = delete;

   private:
    GroupFailure* const failure_;
  };

  // OK while the group is whole, else UNAVAILABLE with the first cause.
  absl::Status status() const;

  // The group leaves in good order, or its failure is dealt with: reports have
  // no effect any more, no hook runs when this returns, and what is to be
  // logged of a failure is. A failure before it still bounds the process's
  // life.
  void Disarm();

 private:
  void Watch();
  void WriteVerdict();

  const Options options_;

  // Held while hooks run, so that Disarm waits for them. Before mutex_.
  absl::Mutex hooks_mutex_;
  std::vector<Hook> hooks_ ABSL_GUARDED_BY(hooks_mutex_);
  std::vector<Hook> logs_ ABSL_GUARDED_BY(hooks_mutex_);

  mutable std::mutex mutex_;  // not absl's: see common/time/steady_wait.h
  std::condition_variable changed_;
  // All guarded by mutex_.
  std::optional<Cause> cause_;
  bool told_ = false;    // by the hooks
  bool logged_ = false;  // by the verdict
  bool disarmed_ = false;
  bool destroyed_ = false;

  absl::Mutex last_words_mutex_;
  std::function<void()> last_words_ ABSL_GUARDED_BY(last_words_mutex_);

  std::thread last_resort_;  // "last-resort"
  std::thread verdict_;      // "verdict"
};

}  // namespace lockstep
