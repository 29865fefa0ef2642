#include "worker/service/worker_service.h"

#include <absl/strings/str_cat.h>

#include <random>
#include <utility>

#include "common/grpc_status.h"
#include "common/status_macros.h"
#include "common/unknown_fields.h"
#include "worker/service/generate_call.h"
#include "worker/service/watch_load_call.h"

namespace lockstep {
namespace {

uint64_t DrawSeed() {
  std::random_device random;
  return uint64_t{random()} << 32 | random();
}

grpc::ServerUnaryReactor* Answer(grpc::CallbackServerContext* context,
                                 const absl::Status& status) {
  grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
  reactor->Finish(ToGrpc(status));
  return reactor;
}

}  // namespace

WorkerService::WorkerService(Facts facts, Admission* admission,
                             const OutputRouter* router, const LoadBoard* board)
    : facts_(std::move(facts)),
      admission_(admission),
      router_(router),
      board_(board) {}

grpc::ServerWriteReactor<v1::WorkerGenerateResponse>* WorkerService::Generate(
    grpc::CallbackServerContext* context,
    const v1::WorkerGenerateRequest* request) {
  auto stream = Submit(*request);
  if (!stream.ok()) return RefuseGenerateCall(stream.status());
  return StartGenerateCall(context, *std::move(stream), admission_);
}

absl::StatusOr<std::shared_ptr<OutputStream>> WorkerService::Submit(
    const v1::WorkerGenerateRequest& request) {
  LOCKSTEP_ASSIGN_OR_RETURN(
      v1::AddRequest add, ValidateRequest(request, facts_.limits, DrawSeed()));
  return admission_->Submit(request.request_id(), std::move(add));
}

grpc::ServerUnaryReactor* WorkerService::Abort(
    grpc::CallbackServerContext* context, const v1::AbortRequest* request,
    v1::AbortResponse* response) {
  return Answer(context, AbortAll(*request, response));
}

absl::Status WorkerService::AbortAll(const v1::AbortRequest& request,
                                     v1::AbortResponse* response) {
  LOCKSTEP_RETURN_IF_ERROR(RefuseUnknownFields(request));
  if (!request.choices().empty() && request.request_ids_size() != 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("choices is given with ", request.request_ids_size(),
                     " request_ids; it needs exactly 1."));
  }
  for (const std::string& request_id : request.request_ids()) {
    const auto stream = router_->Find(request_id);
    if (stream == nullptr) {
      response->add_unknown(request_id);
      continue;
    }
    admission_->Abort(
        *stream,
        absl::MakeConstSpan(request.choices().data(), request.choices_size()),
        v1::ABORT_CALL);
  }
  return absl::OkStatus();
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
  return StartWatchLoadCall(*interval, board_);
}

}  // namespace lockstep
