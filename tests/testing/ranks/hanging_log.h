#pragma once

#include <absl/synchronization/notification.h>
#include <glog/logging.h>

#include <cstddef>

namespace lockstep::testing {

// A log whose reader hangs, as a full pipe does, until `go_on`: whoever logs
// waits.
//
//   HangingLog log;
//   …what logs, and what must not wait for it…
//   log.hangs.WaitForNotification();
//   log.go_on.Notify();  // before it is destroyed
class HangingLog final : public google::LogSink {
 public:
  HangingLog() { google::AddLogSink(this); }
  ~HangingLog() override { google::RemoveLogSink(this); }

  using google::LogSink::send;
  void send(google::LogSeverity, const char*, const char*, int,
            const google::LogMessageTime&, const char*, size_t) override {
    if (!hangs.HasBeenNotified()) hangs.Notify();
    go_on.WaitForNotification();
  }

  absl::Notification hangs, go_on;
};

}  // namespace lockstep::testing
