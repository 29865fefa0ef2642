#pragma once

#include <absl/status/status.h>
#include <absl/time/time.h>

#include <atomic>
#include <cstdint>

#include "hub/download_progress.h"
#include "hub/hub_cache.h"
#include "hub/hub_client.h"
#include "hub/model_name.h"

namespace lockstep {

// What the downloads of one model share.
struct DownloadContext {
  const HubCache& cache;
  DownloadProgress& progress;
  const std::atomic<bool>& stop;  // turned true: they end, CANCELLED
  absl::Duration retry_wait;      // before the first retry; doubles with each
};

// The bytes of a blob that an earlier download has left.
int64_t IncompleteBytes(const HubCache& cache, const HubModel& file,
                        const HubFile& described);

// Downloads a file into its blob, unless it is there or another process puts it
// there meanwhile: it goes on where an earlier download has ended, asks again
// when the connection breaks (more often than a few times without a byte is an
// error), and compares the hash. What does not match is deleted: DATA_LOSS.
// What is left of a download that failed otherwise is gone on with by the next
// one. RESOURCE_EXHAUSTED: the disk is full. `hub` is the calling thread's.
absl::Status DownloadBlob(HubClient& hub, const HubModel& file,
                          const HubFile& described,
                          const DownloadContext& context);

}  // namespace lockstep
