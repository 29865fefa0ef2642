#include "worker/follower.h"

#include <cstdint>
#include <utility>

#include "common/status_macros.h"
#include "common/termination_signals.h"
#include "worker/collectives/blamed_rank.h"
#include "worker/runtime/rank_loop.h"
#include "worker/runtime/silent_sink.h"
#include "worker/step_health.h"
#include "worker/worker_metrics.h"

namespace lockstep {
namespace {

uint64_t FirstStepAfterWarmUp(const Rank& rank) {
  return kWarmUpSteps + rank.scheduler_options().steps_in_flight;
}

}  // namespace

Follower::Follower(const WorkerOptions& options, Rank* rank,
                   Membership membership, GroupFailure* failure,
                   HealthBoard* health, MetricBoard* metrics)
    : options_(options),
      rank_(rank),
      failure_(failure),
      health_(health),
      metrics_(metrics),
      collective_address_(membership.collective_address),
      source_(options.rank.rank, std::move(membership), failure,
              {.watch = {.timeout = options.heartbeat_timeout}}),
      step_age_(source_.progress(), FirstStepAfterWarmUp(*rank)) {
  IgnoreTerminationSignals();
  failure_->OnFailure([this](const auto& cause) {
    health_->EnterSilently(Phase::kFailed, cause.ToString());
    source_.TellFailure(cause);
    rank_->EndCollective(
        BlameRank(cause.rank, absl::UnavailableError(cause.reason)));
  });
  failure_->OnVerdict([this](const auto&) { health_->LogPhase(); });
}

// First of all no hook refers to this any more.
Follower::~Follower() {
  failure_->Disarm();
  health_->ClearWork();
}

absl::Status Follower::Run() {
  const absl::Status status = LoadAndStep();
  if (!status.ok()) {
    // The leader is told; does nothing where it is known.
    failure_->ReportError(options_.rank.rank, v1::START_UP_FAILED, status);
    return failure_->status();
  }
  source_.Leave();
  return status;
}

absl::Status Follower::LoadAndStep() {
  if (const absl::Status met = rank_->MeetRanks(collective_address_);
      !met.ok()) {
    failure_->ReportError(BlamedRank(met).value_or(options_.rank.rank),
                          v1::COLLECTIVE_FAILED, met);
    return failure_->status();
  }
  const RankMeters meters = {.rank = options_.rank.rank,
                             .steps = &step_meter_,
                             .heartbeats = &source_.heartbeats(),
                             .collective = rank_->collective()};
  const MetricBoard::Registration told_metrics = metrics_->Register(
      [meters](MetricWriter& writer) { CollectRank(meters, writer); });
  health_->Enter(Phase::kLoading, options_.rank.model);
  LOCKSTEP_RETURN_IF_ERROR(rank_->Load([this](const std::string& progress) {
    health_->Enter(Phase::kLoading, progress);
  }));
  source_.TellLoaded();
  health_->Enter(Phase::kReady);
  health_->SetWork(StepWorkLimits(options_.step_timeout),
                   [this] { return step_age_.Overdue(); });
  SilentSink sink;
  LOCKSTEP_RETURN_IF_ERROR(RunRankLoop({.rank = options_.rank.rank,
                                        .scheduler = rank_->scheduler_options(),
                                        .source = &source_,
                                        .engine = rank_->engine(),
                                        .sink = &sink,
                                        .failure = failure_,
                                        .step_timeout = options_.step_timeout,
                                        .on_step_end = nullptr,
                                        .progress = source_.progress(),
                                        .collective = rank_->collective(),
                                        .meter = &step_meter_,
                                        .grammars = rank_->grammars()}));
  rank_->CloseCollective();
  return absl::OkStatus();
}

}  // namespace lockstep
