#include "worker/leader.h"

#include <absl/strings/str_cat.h>
#include <glog/logging.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <optional>
#include <utility>

#include "common/error_reason.h"
#include "common/program/version.h"
#include "common/security/grpc_credentials.h"
#include "common/security/tls_flags.h"
#include "common/status_macros.h"
#include "common/termination_signals.h"
#include "worker/collectives/blamed_rank.h"
#include "worker/runtime/rank_loop.h"
#include "worker/step_health.h"
#include "worker/worker_metrics.h"

namespace lockstep {
namespace {

constexpr absl::Duration kFollowersTimeout = absl::Seconds(3);
// For the last messages of streams that have ended.
constexpr int kServerGraceMs = 500;
constexpr int kQueuedContexts = 8;
// In which the steps that end the last requests are done; who hangs is known
// some heartbeats later.
constexpr std::chrono::seconds kHurryLimit{3};

RequestInbox::Limits InboxLimits(const WorkerOptions& options,
                                 const Rank& rank) {
  const int64_t context = rank.scheduler_options().max_context;
  return {.max_queued_requests = options.max_queued_requests,
          .max_queued_tokens = options.max_queued_tokens > 0
                                   ? options.max_queued_tokens
                                   : kQueuedContexts * context};
}

// A step's positions fit twice: its reader has a step's time to keep up.
Admission::Options AdmissionOptions(const Rank& rank, RequestMeters* meters) {
  Admission::Options options;
  options.stream.meters = meters;
  options.stream.max_buffered_positions =
      std::max(options.stream.max_buffered_positions,
               2 * rank.scheduler_options().max_step_tokens);
  return options;
}

WorkerService::Facts FactsOf(const WorkerOptions& options, const Rank& rank) {
  WorkerService::Facts facts;
  facts.model = rank.model_info(options.served_model_name);
  facts.server = rank.server_info();
  facts.server.set_version(kVersion);
  facts.limits.vocabulary_size = facts.model.vocabulary_size();
  facts.limits.max_context = facts.model.max_context_tokens();
  if (facts.model.has_embedding()) {
    facts.limits.embedding = facts.model.embedding();
  }
  facts.limits.no_embedding = facts.model.no_embedding();
  facts.limits.no_generation = facts.model.no_generation();
  facts.limits.sampling_defaults = facts.model.default_sampling();
  facts.limits.eos_token_ids = {facts.model.eos_token_ids().begin(),
                                facts.model.eos_token_ids().end()};
  return facts;
}

}  // namespace

Leader::Leader(const WorkerOptions& options, Rank* rank, Membership membership,
               GroupFailure* failure, HealthBoard* health, MetricBoard* metrics)
    : options_(options),
      rank_(rank),
      failure_(failure),
      health_(health),
      metrics_(metrics),
      collective_address_(membership.collective_address),
      inbox_(InboxLimits(options, *rank)),
      router_(&inbox_),
      drain_(&admission_, &router_, &inbox_),
      admission_(&inbox_, &router_, AdmissionOptions(*rank, &request_meters_)),
      grammars_(rank->grammars(), &inbox_, &admission_.timers(), {}),
      board_(&inbox_),
      loads_({.ranks = options.rank.size,
              .timeout = options.load_timeout,
              .tell =
                  [health](const std::string& who) {
                    health->Enter(Phase::kLoading, who);
                  }},
             failure),
      source_(std::move(membership), &inbox_, failure,
              {.timeout = options.heartbeat_timeout}, /*link=*/{},
              [this](int rank) { loads_.SetLoaded(rank); }),
      service_(FactsOf(options, *rank), &admission_, &router_, &board_, &drain_,
               &grammars_) {
  failure_->OnFailure([this](const auto& cause) { OnFailure(cause); });
  failure_->OnVerdict([this](const auto&) { LogFailure(); });
}

// First of all no hook refers to this any more; then no call does, be it one
// that waits for a grammar, which the server would wait for.
Leader::~Leader() {
  failure_->Disarm();
  health_->ClearWork();
  grammars_.Close(
      MakeError(ErrorReason::kWorkerStopped,
                "the worker shut down before the request had begun."));
  if (server_ != nullptr) server_->Shutdown(kServerGraceMs);
  // What ends a step that hangs looks at the source, which goes before them.
  admission_.timers().Stop();
}

absl::Status Leader::Run() {
  absl::Status status = Prepare();
  if (status.ok()) status = Serve();
  // All is done; what is left would take a late one for the end.
  if (status.ok()) IgnoreTerminationSignals();
  // For the followers; does nothing where it is known.
  if (!status.ok() && options_.rank.size > 1) {
    failure_->Report({.rank = options_.rank.rank,
                      .kind = v1::START_UP_FAILED,
                      .reason = std::string(status.message())});
  }
  return status;
}

absl::Status Leader::Prepare() {
  const int64_t context = rank_->scheduler_options().max_context;
  if (options_.max_queued_tokens > 0 && options_.max_queued_tokens < context) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--max_queued_tokens is ", options_.max_queued_tokens,
        "; it must be at least the context of ", context, " tokens."));
  }
  LOCKSTEP_ASSIGN_OR_RETURN(tls_, StartServerTls(options_.tls));
  LOCKSTEP_ASSIGN_OR_RETURN(
      server_,
      GrpcServer::Start(options_.listen, "listen", {&service_},
                        {v1::Worker::service_full_name()},
                        {.credentials = MakeServerCredentials(tls_.get())}));
  admission_.OnState([this](v1::ServingState state) { OnState(state); });
  if (const absl::Status met = rank_->MeetRanks(collective_address_);
      !met.ok()) {
    // That a rank left may be seen here first.
    failure_->ReportError(BlamedRank(met).value_or(options_.rank.rank),
                          v1::COLLECTIVE_FAILED, met);
    return failure_->status();
  }
  TellMetrics();
  health_->Enter(Phase::kLoading, options_.rank.model);
  loads_.Start();
  LOCKSTEP_RETURN_IF_ERROR(rank_->Load([this](const std::string& progress) {
    health_->Enter(Phase::kLoading, progress);
  }));
  LOG(INFO) << rank_->Description();
  for (const std::string& note : rank_->notes()) {
    LOG(WARNING) << options_.rank.model << ": " << note;
  }
  loads_.SetLoaded(options_.rank.rank);
  LOCKSTEP_RETURN_IF_ERROR(loads_.WaitForAll());
  health_->Enter(Phase::kWarmingUp);
  return warm_up_.Start(&admission_, rank_->generates(),
                        [this](const absl::Status& status) { OnWarm(status); });
}

absl::Status Leader::Serve() {
  TerminationSignals signals({.grace = options_.drain_timeout,
                              .begin = [this] { drain_.Begin(); },
                              .hurry = [this] { Hurry(); },
                              .log =
                                  [this] {
                                    health_->LogPhase();
                                    drain_.LogBegin();
                                  }});
  // The warm-up may take its time.
  health_->SetWork(StepWorkLimits(options_.step_timeout), [this] {
    return is_warm_ ? board_.Overdue() : absl::ZeroDuration();
  });
  LOCKSTEP_RETURN_IF_ERROR(RunRankLoop(
      {.rank = options_.rank.rank,
       .scheduler = rank_->scheduler_options(),
       .source = &source_,
       .engine = rank_->engine(),
       .sink = &router_,
       .failure = failure_,
       .step_timeout = options_.step_timeout,
       .on_step_end = [this](const SchedulerStats& stats) { OnStepEnd(stats); },
       .progress = source_.progress(),
       .collective = rank_->collective(),
       .meter = &step_meter_,
       .grammars = rank_->grammars()}));
  rank_->CloseCollective();
  admission_.timers().Cancel(hurry_timer_);
  LOCKSTEP_RETURN_IF_ERROR(source_.WaitForFollowers(kFollowersTimeout));
  // Of ended streams some clients have not read all; `signals` bounds the wait.
  admission_.WaitForCalls();
  return absl::OkStatus();
}

void Leader::OnStepEnd(const SchedulerStats& stats) {
  board_.Publish(stats);
  router_.EndStep();
}

void Leader::TellMetrics() {
  const RankMeters rank = {.rank = options_.rank.rank,
                           .steps = &step_meter_,
                           .heartbeats = &source_.heartbeats(),
                           .collective = rank_->collective()};
  const GroupMeters group = {.model_name = options_.served_model_name,
                             .ranks = options_.rank.size,
                             .scheduler = rank_->scheduler_options(),
                             .board = &board_,
                             .admission = &admission_,
                             .router = &router_,
                             .requests = &request_meters_,
                             .steps = &step_meter_};
  told_metrics_ = metrics_->Register([rank, group](MetricWriter& writer) {
    CollectRank(rank, writer);
    CollectGroup(group, writer);
  });
}

void Leader::OnWarm(const absl::Status& status) {
  if (status.ok()) {
    is_warm_ = true;
    return admission_.Open();
  }
  // Whatever else ends it is a failure already, or a signal.
  if (ErrorReasonOf(status) != "NOT_FINITE") return;
  failure_->Report(
      {.rank = options_.rank.rank,
       .kind = v1::START_UP_FAILED,
       .reason = absl::StrCat("of the warm-up ", status.message())});
}

void Leader::OnState(v1::ServingState state) {
  server_->SetServing(state == v1::SERVING);
  switch (state) {
    case v1::STARTING:
      return health_->Enter(Phase::kWarmingUp);
    case v1::SERVING:
      health_->Enter(Phase::kReady);
      return Announce();
    default:  // whoever drains it logs that
      health_->EnterSilently(Phase::kDraining);
  }
}

void Leader::Announce() {
  if (std::exchange(is_announced_, true)) return;
  const std::string host(options_.listen, 0, options_.listen.rfind(':'));
  std::printf("worker: serving %s on %s:%d\n",
              options_.served_model_name.c_str(), host.c_str(),
              server_->port());
  std::fflush(stdout);
}

// A step that hangs must not keep the process after a second signal.
void Leader::Hurry() {
  drain_.Hurry();
  hurry_timer_ = admission_.timers().At(Admission::Clock::now() + kHurryLimit,
                                        [this] { EndOverdueStep(); });
}

// Heartbeats tell which rank the others wait for; alone it is this one.
void Leader::EndOverdueStep() {
  if (StepProgress* const progress = source_.progress()) {
    progress->SetOverdue(progress->Read().step());
    return;
  }
  failure_->Report({.rank = options_.rank.rank,
                    .kind = v1::STEP_OVERDUE,
                    .reason = absl::StrCat(
                        "the last requests did not end within ",
                        absl::FormatDuration(absl::FromChrono(kHurryLimit)),
                        " of the end of the drain.")});
}

// No lock under which another thread may log is taken before all have been
// told: nobody may read the log.
void Leader::OnFailure(const GroupFailure::Cause& cause) {
  const absl::Status status =
      MakeError(ErrorReason::kGroupFailed, failure_->status().message(),
                {.metadata = {{"rank", absl::StrCat(cause.rank)},
                              {"kind", v1::FailureKind_Name(cause.kind)}},
                 .retry_delay = std::nullopt});
  health_->EnterSilently(Phase::kFailed, cause.ToString());
  inbox_.Close(status);
  rank_->EndCollective(
      BlameRank(cause.rank, absl::UnavailableError(cause.reason)));
  source_.TellFailure(cause);
  failed_ = router_.FailAll(status);
  admission_.Close(v1::FAILED, status);
}

void Leader::LogFailure() {
  health_->LogPhase();
  for (const auto& stream : failed_) LOG(INFO) << stream->Description();
}

}  // namespace lockstep
