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
  LOG(INFO) << "draining: " << router_->Live().size() << " live requests";
  router_->WhenEmpty([this] { inbox_->Stop(); });
}

void Drain::Hurry() {
  for (const auto& stream : router_->Live()) {
    admission_->Abort(*stream, {}, v1::SHUTDOWN);
    stream->Fail(absl::UnavailableError(
        "the worker shut down before the request had ended."));
    stream->Wake();
  }
}

}  // namespace lockstep
