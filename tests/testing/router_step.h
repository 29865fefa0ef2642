#pragma once

#include <absl/synchronization/notification.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <memory>

#include "proto/group.pb.h"
#include "worker/service/output_router.h"
#include "worker/service/output_stream.h"

namespace lockstep::testing {

// Ends a step of `router` and waits until its streams were told and woken: a
// stream that comes after all others is.
inline void EndStepAndWait(OutputRouter& router) {
  constexpr uint64_t kNumber = std::numeric_limits<uint64_t>::max();
  auto request = std::make_shared<v1::AddRequest>();
  request->set_request(kNumber);
  const auto last = std::make_shared<OutputStream>("(the last)", request,
                                                   OutputStream::Options());
  absl::Notification woken;
  last->set_reader([&] { woken.Notify(); });
  EXPECT_TRUE(router.Register(last).ok());
  router.OnToken({.request = kNumber}, 0, {});
  router.EndStep();
  woken.WaitForNotification();
  last->set_reader(nullptr);
  router.Unregister(*last);
}

}  // namespace lockstep::testing
