#include "worker/service/drain.h"

#include <glog/logging.h>

#include <utility>

namespace lockstep {

Drain::Drain(Admission* admission, OutputRouter* router, RequestInbox* inbox,
             std::function<void()> not_serving)
    : admission_(admission),
      router_(router),
      inbox_(inbox),
      not_serving_(std::move(not_serving)) {}

void Drain::Begin() {
  not_serving_();
  admission_->Close("the worker is draining; ask another one.");
  not_serving_();  // where the warm-up has just ended and opened
  LOG(INFO) << "draining: " << router_->Live().size() << " live requests";
  router_->WhenEmpty([inbox = inbox_] { inbox->Stop(); });
}

void Drain::Hurry() {
  const absl::Status status = absl::UnavailableError(
      "the worker shut down before the request had ended.");
  for (const auto& stream : router_->Live()) {
    admission_->Abort(*stream, {}, v1::SHUTDOWN);
    stream->Fail(status);
    stream->Wake();
  }
  admission_->EndCalls(status);
}

}  // namespace lockstep
