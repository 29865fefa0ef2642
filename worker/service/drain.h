#pragma once

#include <functional>

#include "worker/group/request_inbox.h"
#include "worker/service/admission.h"
#include "worker/service/output_router.h"

namespace lockstep {

// How the leader stops: no new requests, the live ones to their end, then the
// stop message, which ends every rank's step loop.
//
//   Drain drain(&admission, &router, &inbox, not_serving);
//   drain.Begin();  // at the first signal
//   drain.Hurry();  // at the second one, or when it takes too long
//
// Any thread; neither call blocks.
class Drain {
 public:
  // All must outlive this. `not_serving` comes first of all, and once more when
  // nothing can undo it.
  Drain(Admission* admission, OutputRouter* router, RequestInbox* inbox,
        std::function<void()> not_serving);

  void Begin();

  // Ends the live requests, and the calls whose clients have not read all of an
  // ended one, with UNAVAILABLE.
  void Hurry();

 private:
  Admission* const admission_;
  OutputRouter* const router_;
  RequestInbox* const inbox_;
  const std::function<void()> not_serving_;
};

}  // namespace lockstep
