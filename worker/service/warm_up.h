#pragma once

#include <absl/status/status.h>

#include <functional>
#include <memory>

#include "worker/service/admission.h"
#include "worker/service/output_stream.h"

namespace lockstep {

// The first request of a group, the leader's own: every rank runs a prefill
// and, of a model that generates, a decode step before the first client is let
// in.
//
//   WarmUp warm_up;
//   LOCKSTEP_RETURN_IF_ERROR(warm_up.Start(&admission, /*generates=*/true,
//                                          [&](absl::Status) {…}));
//
// Lives until the step loop has ended.
class WarmUp {
 public:
  ~WarmUp();

  // `done` is called once, on the thread "streams", with how it ended.
  absl::Status Start(Admission* admission, bool generates,
                     std::function<void(const absl::Status&)> done);

 private:
  std::shared_ptr<OutputStream> stream_;
};

}  // namespace lockstep
