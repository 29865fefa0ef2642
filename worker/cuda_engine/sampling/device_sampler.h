#pragma once

#include <absl/status/status.h>
#include <absl/types/span.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/cuda/sampling/logprobs.h"
#include "worker/core/step_plan.h"
#include "worker/core/step_result.h"
#include "worker/cuda_engine/sampling/sampling_rows.h"
#include "worker/device/cuda_stream.h"
#include "worker/device/device_layout.h"
#include "worker/device/pinned_memory.h"
#include "worker/engine/batch_builder.h"
#include "worker/grammar/step_masks.h"

namespace lockstep {

// Chooses and scores a step's tokens where their logits lie, in device memory;
// ids, and what log-probabilities are made of, are all that comes back.
//
//   LOCKSTEP_RETURN_IF_ERROR(
//       sampler.Launch(flight, plan, rows, logits, ids, &masks, stream));
//   …copy the ids to the host, wait for the stream…
//   sampler.Finish(flight, host_ids, &result);
//
// Up to limits.flights steps may be between Launch and Finish, each with a
// number of its own. Used by the engine's thread.
class DeviceSampler {
 public:
  struct Limits {
    int vocab_size = 0;
    int sequences = 0;  // of a step
    int logits_rows = 0;
    int adjustments = 0;  // ids with penalties, biases and such, of a step
    int flights = 1;
  };

  // Rows `stride` floats apart, in device memory.
  struct Logits {
    float* data = nullptr;
    int64_t stride = 0;
  };

  // Names what it takes on the device; it is where `layout` places it.
  DeviceSampler(const Limits& limits, DeviceLayout* layout);
  DeviceSampler(const DeviceSampler&) = delete;
  DeviceSampler& operator=(const DeviceSampler&) = delete;

  // Before the first Launch.
  absl::Status AllocatePinned(const CudaDevice* device);

  // Puts it on the stream, after what makes the logits of `rows` and, in
  // `ids` [rows], the largest of each or kNoFiniteLogit. Replaces the ids of
  // those that choose otherwise, and leaves the logits of rows with a mask
  // masked. Waits for masks that are not found yet, and for nothing on the
  // device.
  absl::Status Launch(int flight, const StepPlan& plan,
                      absl::Span<const LogitsRow> rows, const Logits& logits,
                      uint32_t* ids, StepMasks* masks, CudaStream* stream);

  // Whether the device chooses or scores rows[row] of the launched step. Not
  // where ids are kept out, nor where its sequences have more ids with
  // penalties than there is room for: the last of those that NeedsHost, whose
  // masks nobody has asked for. All others are taken, if there is room for
  // kMostDeviceAdjustments of each.
  bool Takes(int flight, int row) const {
    return flights_[flight].places[row].is_taken;
  }

  // Once it has run: fills `result`, which has an entry a span, from the ids as
  // they came back. A row without a finite logit, of those it does not take
  // too, spoils its span and no other. Needs the plan and its sequences no
  // more.
  void Finish(int flight, const uint32_t* host_ids, StepResult* result) const;

 private:
  // Where what a row makes belongs.
  struct Place {
    int span = 0;
    int prompt_place = -1;  // in prompt_logprobs; -1: it chooses
    bool is_taken = true;
    bool has_mask = false;
    bool has_ended = false;  // the sequence, at its grammar
  };

  struct Flight {
    std::vector<Place> places;  // of the rows
    std::vector<cuda::ScoredRow> scored;
    std::unique_ptr<PinnedMemory> staged;
    std::unique_ptr<PinnedMemory> scores;  // RowLogprobs [logits_rows]
  };

  // The rows of spans that NeedsHost, or those of the others.
  void AddRows(bool need_host, const StepPlan& plan,
               absl::Span<const LogitsRow> rows, StepMasks* masks,
               Flight* flight);
  // Of row `index`.
  Place Add(int index, const LogitsRow& row, const SequenceSpan& span,
            StepMasks* masks);
  absl::Status LaunchKernels(Flight* flight, const Logits& logits,
                             uint32_t* ids, CudaStream* stream);
  size_t MostBytes() const;
  // Appends values to what is staged; returns where they will be.
  template <typename T>
  const T* Put(const std::vector<T>& values, PinnedMemory* staged);

  const Limits limits_;
  std::byte* on_device_ = nullptr;       // [MostBytes()]
  float* kept_ = nullptr;                // a float an adjustment
  cuda::RowLogprobs* scores_ = nullptr;  // [logits_rows]
  SamplingRows rows_;                    // of the last Launch
  size_t used_ = 0;                      // of what is staged
  std::vector<Flight> flights_;
};

}  // namespace lockstep
