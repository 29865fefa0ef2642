#include "tests/integration/watched_run.h"

#include <absl/status/status.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>
#include <absl/strings/str_join.h>
#include <glog/logging.h>

#include <bit>
#include <memory>
#include <optional>
#include <utility>

#include "common/status_macros.h"
#include "tests/testing/engine_group.h"
#include "tests/testing/output_recorder.h"
#include "worker/core/sequence.h"
#include "worker/core/step_plan.h"
#include "worker/core/step_result.h"
#include "worker/scheduler/scheduler.h"

namespace lockstep::testing {
namespace {

// Far more than any schedule takes.
constexpr int kMostSteps = 20000;

EngineGroup::Options EngineOptions(const Configuration& configuration,
                                   const Schedule& schedule) {
  const SchedulerOptions& limits = schedule.limits;
  return {.engine = {.num_pages = limits.num_pages,
                     .page_size = limits.page_size,
                     .max_step_tokens = limits.max_step_tokens,
                     .max_sequences = limits.max_sequences,
                     .max_logits_rows = limits.max_logits_rows,
                     .arithmetic = configuration.arithmetic,
                     .kv_type = configuration.kv_type},
          .ranks = {.isa = schedule.isa, .threads = schedule.num_threads}};
}

class Run {
 public:
  Run(const Schedule& schedule, absl::Span<const uint32_t> output,
      EngineGroup* engine)
      : schedule_(schedule),
        resumed_(output.first(schedule.num_resumed)),
        engine_(engine),
        scheduler_(schedule.limits, &outputs_),
        mate_numbers_(schedule.mates.size()) {
    engine_->engine(schedule.seen_rank)
        .set_logits_observer([this](const SequenceSpan& span, int position,
                                    absl::Span<const float> logits) {
          if (span.sequence->id() != watched_) return;
          seen_.rows.push_back({position, {logits.begin(), logits.end()}});
        });
  }

  absl::StatusOr<Observation> Observe() && {
    NameChoices();
    for (int step = 0; !outputs_.finished(watched_); ++step) {
      if (step == kMostSteps) {
        return absl::DeadlineExceededError("the watched request never ends");
      }
      ApplyArrivals(step);
      LOCKSTEP_RETURN_IF_ERROR(Step());
    }
    const OutputRecorder::Record& record = outputs_.of(watched_);
    seen_.tokens.assign(resumed_.begin(), resumed_.end());
    seen_.tokens.insert(seen_.tokens.end(), record.tokens.begin(),
                        record.tokens.end());
    seen_.embedding = record.embedding;
    if (schedule_.watched.has_embedding() && seen_.embedding.empty()) {
      return absl::InternalError("the watched request has no embedding");
    }
    if (record.cached_tokens.value_or(0) > 0) Happened("cache hit");
    return std::move(seen_);
  }

 private:
  void Happened(std::string event) { seen_.events.insert(std::move(event)); }

  void NameChoices() {
    Happened(absl::StrCat(schedule_.num_ranks, " ranks"));
    Happened(absl::StrCat(schedule_.num_threads, " threads"));
    Happened(absl::StrCat("pages of ", schedule_.limits.page_size));
    Happened(schedule_.isa);
    if (schedule_.num_resumed > 0) Happened("resumed");
  }

  void ApplyArrivals(int step) {
    for (size_t i = 0; i < schedule_.mates.size(); ++i) {
      const Mate& mate = schedule_.mates[i];
      if (mate.arrives == step) mate_numbers_[i] = Add(mate.request);
      if (mate.leaves == step) Abort(mate_numbers_[i]);
    }
    if (schedule_.arrives == step) {
      v1::AddRequest request = schedule_.watched;
      request.mutable_resume_token_ids()->Assign(resumed_.begin(),
                                                 resumed_.end());
      watched_ = {Add(std::move(request)), 0};
    }
  }

  uint64_t Add(v1::AddRequest request) {
    request.set_request(++num_requests_);
    v1::RankMessage message;
    *message.mutable_add() = std::move(request);
    CHECK(scheduler_.Apply(message).ok());
    return num_requests_;
  }

  void Abort(uint64_t request) {
    if (last_step_of_watched_ && !outputs_.finished({request, 0})) {
      Happened("mate aborted");
    }
    v1::RankMessage message;
    message.mutable_abort()->set_request(request);
    CHECK(scheduler_.Apply(message).ok());
  }

  absl::Status Step() {
    if (!scheduler_.HasWork()) return absl::OkStatus();
    const StepPlan& plan = scheduler_.Plan();
    Watch(plan);
    LOCKSTEP_RETURN_IF_ERROR(engine_->Execute(plan, &result_));
    scheduler_.Commit(result_);
    return scheduler_.CheckConservation();
  }

  // A decoding sequence is in every plan, and goes on where it was, unless it
  // is preempted.
  void Watch(const StepPlan& plan) {
    const SequenceSpan* watched = nullptr;
    for (const SequenceSpan& span : plan.spans) {
      if (span.sequence->id() == watched_) watched = &span;
    }
    const std::optional<SequenceSpan>& last = last_step_of_watched_;
    if (watched == nullptr) {
      if (last && last->samples) Happened("preempted");
      return;
    }
    if (plan.spans.size() > 1) Happened("others in its batch");
    if (last && watched->begin < last->begin + last->count) {
      Happened("preempted");
    }
    if (!last && !watched->samples) Happened("chunked prefill");
    if (watched->begin + watched->count > 512) Happened("long context");
    last_step_of_watched_ = *watched;
  }

  const Schedule& schedule_;
  const absl::Span<const uint32_t> resumed_;
  EngineGroup* const engine_;
  OutputRecorder outputs_;
  Scheduler scheduler_;
  StepResult result_;
  uint64_t num_requests_ = 0;
  std::vector<uint64_t> mate_numbers_;
  SequenceId watched_;  // request 0, which is none's, before it arrives
  std::optional<SequenceSpan> last_step_of_watched_;
  Observation seen_;
};

// Empty if the bits are equal.
std::string VectorDifference(const std::vector<float>& expected,
                             const std::vector<float>& found) {
  if (found.size() != expected.size()) {
    return absl::StrCat(found.size(), " values, alone ", expected.size());
  }
  for (size_t i = 0; i < found.size(); ++i) {
    const uint32_t expected_bits = std::bit_cast<uint32_t>(expected[i]);
    const uint32_t found_bits = std::bit_cast<uint32_t>(found[i]);
    if (found_bits == expected_bits) continue;
    return absl::StrFormat("value %d: %.9g (%08x), alone %.9g (%08x)", i,
                           found[i], found_bits, expected[i], expected_bits);
  }
  return "";
}

std::string RowDifference(const Observation::Row& expected,
                          const Observation::Row& found) {
  CHECK_EQ(expected.position, found.position);
  const std::string difference =
      VectorDifference(expected.logits, found.logits);
  return difference.empty() ? ""
                            : absl::StrCat("logits of position ",
                                           found.position, ", ", difference);
}

// Where the rows begin that a schedule must have shown.
int FirstPosition(const Schedule& schedule) {
  const bool whole = schedule.watched.sampling().prompt_logprobs_plus_one() > 0;
  return whole ? 0 : schedule.watched.prompt_token_ids_size() - 1;
}

}  // namespace

absl::StatusOr<Observation> RunSchedule(const Configuration& configuration,
                                        const Schedule& schedule,
                                        absl::Span<const uint32_t> output) {
  LOCKSTEP_ASSIGN_OR_RETURN(
      const std::unique_ptr<EngineGroup> engine,
      EngineGroup::Create(configuration.model->files, schedule.num_ranks,
                          EngineOptions(configuration, schedule)));
  return Run(schedule, output, engine.get()).Observe();
}

std::string Difference(const Observation& expected, const Schedule& schedule,
                       const Observation& found) {
  if (schedule.watched.has_embedding()) {
    return VectorDifference(expected.embedding, found.embedding);
  }
  std::vector<bool> is_seen(expected.rows.size());
  for (const Observation::Row& row : found.rows) {
    if (row.position >= expected.rows.size()) {
      return absl::StrCat("position ", row.position, " beyond the end");
    }
    const std::string difference =
        RowDifference(expected.rows[row.position], row);
    if (!difference.empty()) return difference;
    is_seen[row.position] = true;
  }
  const int prompt = schedule.watched.prompt_token_ids_size();
  for (int i = FirstPosition(schedule); i < is_seen.size(); ++i) {
    const bool is_resumed =
        i >= prompt - 1 && i < prompt - 1 + schedule.num_resumed;
    if (!is_seen[i] && !is_resumed) {
      return absl::StrCat("no logits of position ", i);
    }
  }
  if (found.tokens != expected.tokens) {
    return absl::StrCat("tokens ", absl::StrJoin(found.tokens, " "), ", alone ",
                        absl::StrJoin(expected.tokens, " "));
  }
  return "";
}

}  // namespace lockstep::testing
