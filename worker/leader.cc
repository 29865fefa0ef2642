#include "worker/leader.h"

#include <absl/strings/str_cat.h>
#include <glog/logging.h>

#include <algorithm>
#include <cstdio>
#include <utility>

#include "common/status_macros.h"
#include "common/termination_signals.h"
#include "worker/runtime/rank_loop.h"

namespace lockstep {
namespace {

constexpr char kVersion[] = "0.1.0";
constexpr absl::Duration kFollowersTimeout = absl::Seconds(3);
// For the last messages of streams that have ended.
constexpr int kServerGraceMs = 500;
constexpr int kQueuedContexts = 8;

RequestInbox::Limits InboxLimits(const WorkerOptions& options,
                                 const Rank& rank) {
  const int64_t context = rank.scheduler_options().max_context;
  return {.max_queued_requests = options.max_queued_requests,
          .max_queued_tokens = options.max_queued_tokens > 0
                                   ? options.max_queued_tokens
                                   : kQueuedContexts * context};
}

// A step's positions fit twice: its reader has a step's time to keep up.
OutputStream::Options StreamOptions(const Rank& rank) {
  OutputStream::Options options;
  options.max_buffered_positions =
      std::max(options.max_buffered_positions,
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
  facts.limits.eos_token_ids = {facts.model.eos_token_ids().begin(),
                                facts.model.eos_token_ids().end()};
  return facts;
}

}  // namespace

Leader::Leader(const WorkerOptions& options, Rank* rank, Membership membership,
               GroupFailure* failure)
    : options_(options),
      rank_(rank),
      failure_(failure),
      collective_address_(membership.collective_address),
      inbox_(InboxLimits(options, *rank)),
      router_(&inbox_),
      admission_(&inbox_, &router_, StreamOptions(*rank)),
      board_(&inbox_),
      source_(std::move(membership), &inbox_, failure,
              {.timeout = options.heartbeat_timeout}),
      service_(FactsOf(options, *rank), &admission_, &router_, &board_) {
  failure_->OnFailure([this](const auto& cause) { OnFailure(cause); });
}

// First of all no hook refers to this any more; then no call does.
Leader::~Leader() {
  failure_->Disarm();
  if (server_ != nullptr) server_->Shutdown(kServerGraceMs);
}

absl::Status Leader::Run() {
  absl::Status status = Prepare();
  if (status.ok()) status = Serve();
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
  LOCKSTEP_ASSIGN_OR_RETURN(
      server_, GrpcServer::Start(options_.listen, "listen", {&service_},
                                 {v1::Worker::service_full_name()}));
  failure_->OnFailure([this](const auto&) { server_->SetServing(false); });
  if (const absl::Status met = rank_->MeetRanks(collective_address_);
      !met.ok()) {
    // That a rank left may be seen here first.
    failure_->ReportError(options_.rank.rank, v1::COLLECTIVE_FAILED, met);
    return failure_->status();
  }
  LOCKSTEP_RETURN_IF_ERROR(rank_->Load());
  LOG(INFO) << rank_->Description();
  drain_ = std::make_unique<Drain>(&admission_, &router_, &inbox_,
                                   [this] { server_->SetServing(false); });
  return warm_up_.Start(&admission_,
                        [this](const absl::Status& status) { OnWarm(status); });
}

absl::Status Leader::Serve() {
  TerminationSignals signals({.grace = options_.drain_timeout,
                              .begin = [this] { drain_->Begin(); },
                              .hurry = [this] { drain_->Hurry(); }});
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
       .collective = rank_->collective()}));
  LOCKSTEP_RETURN_IF_ERROR(source_.WaitForFollowers(kFollowersTimeout));
  // Of ended streams some clients have not read all; `signals` bounds the wait.
  admission_.WaitForCalls();
  return absl::OkStatus();
}

void Leader::OnStepEnd(const SchedulerStats& stats) {
  board_.Publish(stats);
  router_.EndStep();
}

void Leader::OnWarm(const absl::Status& status) {
  if (!status.ok()) return;
  server_->SetServing(true);
  if (!admission_.Open()) {  // a signal came first
    server_->SetServing(false);
    return;
  }
  const std::string host(options_.listen, 0, options_.listen.rfind(':'));
  std::printf("worker: serving %s on %s:%d\n",
              options_.served_model_name.c_str(), host.c_str(),
              server_->port());
  std::fflush(stdout);
}

void Leader::OnFailure(const GroupFailure::Cause& cause) {
  const absl::Status status = failure_->status();
  admission_.Close(status.message());
  inbox_.Close(status);
  rank_->AbortCollective(cause.ToString());
  source_.TellFailure(cause);
  router_.FailAll(status);
}

}  // namespace lockstep
