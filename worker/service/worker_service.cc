#include "worker/service/worker_service.h"

#include <absl/strings/str_cat.h>

#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/grpc_status.h"
#include "common/status_macros.h"
#include "common/tracing/call_metadata.h"
#include "common/unknown_fields.h"
#include "common/wire.h"
#include "worker/service/watch_load_call.h"

namespace lockstep {
namespace {

constexpr uint32_t kMostDrainMs = 86'400'000;

uint64_t DrawSeed() {
  std::random_device random;
  return uint64_t{random()} << 32 | random();
}

// By which the log's line can be joined to those of the programs before it.
std::string CallerOf(const grpc::CallbackServerContext& context) {
  std::string caller = absl::StrCat("trace=", TraceOf(context).trace_id);
  const std::string id = RequestIdOf(context);
  if (!id.empty()) absl::StrAppend(&caller, " client_request=", id);
  return caller;
}

grpc::ServerUnaryReactor* Answer(grpc::CallbackServerContext* context,
                                 const absl::Status& status) {
  grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
  reactor->Finish(ToGrpc(status));
  return reactor;
}

absl::StatusOr<std::optional<std::chrono::milliseconds>> DrainTimeout(
    const v1::DrainRequest& request) {
  LOCKSTEP_RETURN_IF_ERROR(RefuseUnknownFields(request));
  if (!request.has_timeout_ms()) return std::nullopt;
  if (request.timeout_ms() > kMostDrainMs) {
    return absl::InvalidArgumentError(
        absl::StrCat("timeout_ms is ", request.timeout_ms(),
                     "; it must be 0 to ", kMostDrainMs, "."));
  }
  return std::chrono::milliseconds(request.timeout_ms());
}

// Each once, and one that the request has.
absl::StatusOr<std::vector<uint32_t>> ChoicesOf(const v1::AbortRequest& abort,
                                                const OutputStream& stream) {
  const uint32_t n = stream.request().sampling().n();
  std::set<uint32_t> choices;
  for (int i = 0; i < abort.choices_size(); ++i) {
    if (abort.choices(i) >= n) {
      return absl::InvalidArgumentError(absl::StrCat(
          "choices[", i, "] is ", abort.choices(i), ", request ",
          stream.request_id(), " has the choices 0 to ", n - 1, "."));
    }
    choices.insert(abort.choices(i));
  }
  return std::vector<uint32_t>(choices.begin(), choices.end());
}

}  // namespace

WorkerService::WorkerService(Facts facts, Admission* admission,
                             const OutputRouter* router, const LoadBoard* board,
                             lockstep::Drain* drain, GrammarCache* grammars)
    : facts_(std::move(facts)),
      admission_(admission),
      router_(router),
      board_(board),
      drain_(drain),
      grammars_(grammars) {}

grpc::ServerWriteReactor<grpc::ByteBuffer>* WorkerService::Generate(
    grpc::CallbackServerContext* context, const grpc::ByteBuffer* request) {
  return StartGenerateCall(
      context, admission_, [&](const OnSubmitted& submitted) {
        Submit(*request, {DeadlineOf(*context), CallerOf(*context)}, submitted);
      });
}

void WorkerService::Submit(const grpc::ByteBuffer& bytes,
                           const CallFacts& call,
                           const OnSubmitted& submitted) {
  v1::WorkerGenerateRequest request;
  const absl::Status parsed = ParseMessage(bytes, &request);
  if (!parsed.ok()) return submitted(parsed);
  auto add = ValidateRequest(request, facts_.limits, DrawSeed());
  if (!add.ok()) return submitted(add.status());
  if (request.has_grammar()) {
    return SubmitWithGrammar(request, *std::move(add), call, submitted);
  }
  submitted(admission_->Submit(request.request_id(), *std::move(add),
                               call.deadline, call.caller));
}

// A grammar that is not good is refused here, before anything is queued; and
// nothing is compiled for a request that has no room.
void WorkerService::SubmitWithGrammar(const v1::WorkerGenerateRequest& request,
                                      v1::AddRequest add, const CallFacts& call,
                                      const OnSubmitted& submitted) {
  if (grammars_ == nullptr) {
    return submitted(
        absl::InvalidArgumentError("grammar is not supported by this worker."));
  }
  const absl::Status room = admission_->Check(add);
  if (!room.ok()) return submitted(room);
  auto submit =
      [this, call, id = request.request_id(), add = std::move(add)](
          const GrammarCache::Lease& lease) mutable
      -> absl::StatusOr<std::shared_ptr<OutputStream>> {
    LOCKSTEP_RETURN_IF_ERROR(grammars_->CheckResume(lease, add));
    add.set_grammar(*lease);
    LOCKSTEP_ASSIGN_OR_RETURN(
        auto stream, admission_->Submit(id, std::move(add), call.deadline,
                                        call.caller));
    stream->Hold(lease);
    return stream;
  };
  grammars_->Get(request.grammar(),
                 [submit, submitted](
                     const absl::StatusOr<GrammarCache::Lease>& lease) mutable {
                   if (!lease.ok()) return submitted(lease.status());
                   submitted(submit(*lease));
                 });
}

grpc::ServerUnaryReactor* WorkerService::Abort(
    grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
    grpc::ByteBuffer* response) {
  const auto aborted = AbortAll(*request);
  if (aborted.ok()) *response = SerializeMessage(*aborted);
  return Answer(context, aborted.status());
}

absl::StatusOr<v1::AbortResponse> WorkerService::AbortAll(
    const grpc::ByteBuffer& bytes) {
  v1::AbortRequest request;
  LOCKSTEP_RETURN_IF_ERROR(ParseMessage(bytes, &request));
  LOCKSTEP_RETURN_IF_ERROR(ValidateAbort(request));
  v1::AbortResponse response;
  for (const std::string& request_id : request.request_ids()) {
    const auto stream = router_->Find(request_id);
    if (stream == nullptr) {
      response.add_unknown(request_id);
      continue;
    }
    LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<uint32_t> choices,
                              ChoicesOf(request, *stream));
    admission_->Abort(*stream, choices, v1::ABORT_CALL);
  }
  return response;
}

grpc::ServerUnaryReactor* WorkerService::GetModelInfo(
    grpc::CallbackServerContext* context,
    const v1::GetModelInfoRequest* request, v1::ModelInfo* response) {
  *response = facts_.model;
  return Answer(context, RefuseUnknownFields(*request));
}

grpc::ServerUnaryReactor* WorkerService::GetServerInfo(
    grpc::CallbackServerContext* context,
    const v1::GetServerInfoRequest* request, v1::ServerInfo* response) {
  *response = facts_.server;
  response->set_uptime_s(std::chrono::duration_cast<std::chrono::seconds>(
                             std::chrono::steady_clock::now() - start_)
                             .count());
  response->set_state(admission_->state());
  *response->mutable_requests() = admission_->counts();
  return Answer(context, RefuseUnknownFields(*request));
}

grpc::ServerWriteReactor<v1::Load>* WorkerService::WatchLoad(
    grpc::CallbackServerContext* /*context*/,
    const v1::WatchLoadRequest* request) {
  if (const absl::Status status = RefuseUnknownFields(*request); !status.ok()) {
    return RefuseWatchLoadCall(status);
  }
  const auto interval = WatchInterval(*request);
  if (!interval.ok()) return RefuseWatchLoadCall(interval.status());
  return StartWatchLoadCall(*interval, [this] {
    v1::Load load = board_->load();
    load.set_state(admission_->state());
    return load;
  });
}

grpc::ServerUnaryReactor* WorkerService::Drain(
    grpc::CallbackServerContext* context, const v1::DrainRequest* request,
    v1::DrainResponse* response) {
  const auto timeout = DrainTimeout(*request);
  if (timeout.ok()) drain_->Pause(*timeout);
  *response = drain_->state();
  return Answer(context, timeout.status());
}

grpc::ServerUnaryReactor* WorkerService::Undrain(
    grpc::CallbackServerContext* context, const v1::UndrainRequest* request,
    v1::DrainResponse* response) {
  absl::Status status = RefuseUnknownFields(*request);
  if (status.ok()) status = drain_->Resume();
  *response = drain_->state();
  return Answer(context, status);
}

}  // namespace lockstep
