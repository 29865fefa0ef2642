#pragma once

#include <absl/status/status.h>

#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "tests/simulation/scenario.pb.h"
#include "worker/core/output_sink.h"

namespace lockstep::testing {

// Holds a scheduler to what it promises of its requests: the order of events of
// a sequence, one terminal event each, and that no request starts before one
// that is due earlier. (Not once some request wants logits of its prompt: then
// one that was admitted may wait for a row.)
//
//   sink.Arrived(add, step);  …the step…
//   absl::Status status = sink.status();
//
// The first broken promise stays. Single-threaded.
class CheckingSink final : public OutputSink {
 public:
  struct Choice {
    bool started = false;
    std::vector<uint32_t> tokens;
    v1::FinishReason reason = v1::FINISH_REASON_UNSPECIFIED;  // until it ends

    bool ended() const { return reason != v1::FINISH_REASON_UNSPECIFIED; }
    friend bool operator==(const Choice&, const Choice&) = default;
  };
  struct Request {
    v1::AddRequest add;
    bool aborted = false;
    std::vector<Choice> choices;
  };

  // Both before the scheduler hears of it.
  void Arrived(const v1::AddRequest& add, uint64_t step);
  void Aborted(uint64_t request);

  const absl::Status& status() const { return status_; }
  const std::map<uint64_t, Request>& requests() const { return requests_; }
  const Totals& totals() const { return totals_; }

  // INTERNAL unless every request has ended, and with what it gets alone.
  absl::Status CheckAllEnded(int max_context, uint32_t vocabulary_size) const;

  void OnFirstScheduled(SequenceId id, int cached_tokens) override;
  void OnPromptLogprobs(SequenceId,
                        std::vector<v1::PositionLogprobs>) override {}
  void OnToken(SequenceId id, uint32_t token,
               std::vector<v1::PositionLogprobs>) override;
  void OnFinish(SequenceId id, v1::FinishReason reason,
                std::optional<uint32_t> stop_token_id) override;

 private:
  // When it is due, its number.
  using Due = std::pair<int64_t, uint64_t>;

  // Null after a broken promise.
  Choice* Live(SequenceId id, const char* event);
  void Broken(SequenceId id, const std::string& what);

  std::map<uint64_t, Request> requests_;
  std::map<uint64_t, Due> due_;  // of those not started
  std::set<Due> waiting_;        // the same
  bool rows_run_out_ = false;
  absl::Status status_;
  Totals totals_;
};

}  // namespace lockstep::testing
