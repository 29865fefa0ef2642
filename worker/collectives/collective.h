#pragma once

#include <absl/status/status.h>
#include <absl/strings/string_view.h>
#include <absl/time/time.h>
#include <absl/types/span.h>

#include <cstdint>

namespace lockstep {

// How the ranks of a group exchange tensors. One object a rank, used by its
// engine thread; Abort may come from any thread.
//
//   LOCKSTEP_RETURN_IF_ERROR(collective->AllReduceSum(hidden));
//
// Every rank makes the same calls with the same sizes, in the same order. Sums
// are taken in the order of kernels::TreeSum over ranks, so that every rank,
// and every implementation that has sums_in_rank_order, gets the same bits. A
// call fails with UNAVAILABLE
// when the group was aborted or a rank left, with DEADLINE_EXCEEDED when its
// time limit has passed. Of the other ranks the call they are at may still
// succeed then; none after it can.
class Collective {
 public:
  virtual ~Collective() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;

  // Else every rank gets the same bits, of some order.
  virtual bool sums_in_rank_order() const { return true; }

  // data[i] becomes the sum over ranks of their data[i].
  virtual absl::Status AllReduceSum(absl::Span<float> data) = 0;

  // out [size, in.size()] gets every rank's `in`, in rank order. `in` may be
  // this rank's part of `out`, which is then left as it is.
  // REQUIRES: out.size() == size() * in.size(); no other overlap.
  virtual absl::Status AllGather(absl::Span<const float> in,
                                 absl::Span<float> out) = 0;

  // How long each call from now on may wait for the other ranks; a message of
  // its end names those that did not come. At first there is no limit: a step
  // has one of its own.
  virtual void SetTimeout(absl::Duration timeout) = 0;

  // Ends the calls in progress on all ranks, and all to come, with UNAVAILABLE:
  // on this rank with `reason`, on others with it or with the name of a rank
  // that left. Legal at any time; the first reason stays.
  void Abort(absl::string_view reason) { End(absl::UnavailableError(reason)); }

  // The same with an UNAVAILABLE that may blame a rank: see BlameRank. Whoever
  // is ended by it blames that one, too.
  virtual void End(const absl::Status& error) = 0;

  // Calls made so far; a forward pass makes 2·layers + 1 and 1.
  virtual int64_t num_all_reduces() const = 0;
  virtual int64_t num_all_gathers() const = 0;
};

}  // namespace lockstep
