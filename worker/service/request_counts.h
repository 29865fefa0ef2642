#pragma once

#include <absl/base/thread_annotations.h>
#include <absl/status/status.h>
#include <absl/synchronization/mutex.h>

#include <cstdint>
#include <map>
#include <string>

#include "proto/worker.pb.h"
#include "worker/service/output_stream.h"

namespace lockstep {

// The requests of clients since the start, by how they ended: see
// v1::RequestCounts. Any thread.
class RequestCounts {
 public:
  void Refused(const absl::Status& why);
  void Accepted();
  // Once, when its call is over. REQUIRES: Accepted was called for it.
  void Ended(const OutputStream& stream);

  v1::RequestCounts counts() const;
  // Those refused, by the name of the reason.
  std::map<std::string, uint64_t> refusals() const;

 private:
  mutable absl::Mutex mutex_;
  v1::RequestCounts counts_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, uint64_t> refusals_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace lockstep
