#include "worker/cuda_engine/sampling/device_sampler.h"

#include <glog/logging.h>

#include <cstring>

#include "common/status_macros.h"
#include "kernels/cuda/argmax.h"
#include "kernels/cuda/cuda_types.h"
#include "kernels/cuda/sampling/adjust.h"
#include "kernels/cuda/sampling/sample.h"
#include "proto/group.pb.h"
#include "worker/core/host_part.h"
#include "worker/core/sequence.h"
#include "worker/sampling/token_mask.h"

namespace lockstep {
namespace {

// Of each array, so that kernels may read it in large pieces.
constexpr size_t kAlignment = 16;

size_t Aligned(size_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

}  // namespace

DeviceSampler::DeviceSampler(const Limits& limits, DeviceLayout* layout)
    : limits_(limits),
      rows_({.vocab_size = limits.vocab_size,
             .rows = limits.logits_rows,
             .choices = limits.sequences,
             .adjustments = limits.adjustments}),
      flights_(limits.flights) {
  layout->Add("how tokens are chosen", MostBytes(), &on_device_);
  layout->Add("adjusted logits", limits.adjustments, &kept_);
  layout->Add("log-probabilities", limits.logits_rows, &scores_);
  for (Flight& flight : flights_) {
    flight.places.reserve(limits.logits_rows);
    flight.scored.reserve(limits.logits_rows);
  }
}

size_t DeviceSampler::MostBytes() const {
  const size_t words = (limits_.vocab_size + 31) / 32;
  return Aligned(limits_.sequences * sizeof(cuda::AdjustedRow)) +
         Aligned(limits_.adjustments * sizeof(cuda::LogitAdjustment)) +
         Aligned(limits_.sequences * words * sizeof(uint32_t)) +
         Aligned(limits_.sequences * sizeof(cuda::SampledRow)) +
         Aligned(limits_.logits_rows * sizeof(cuda::ScoredRow));
}

absl::Status DeviceSampler::AllocatePinned(const CudaDevice* device) {
  for (Flight& flight : flights_) {
    LOCKSTEP_ASSIGN_OR_RETURN(flight.staged,
                              PinnedMemory::Allocate(device, MostBytes()));
    LOCKSTEP_ASSIGN_OR_RETURN(
        flight.scores,
        PinnedMemory::Allocate(
            device, limits_.logits_rows * sizeof(cuda::RowLogprobs)));
  }
  return absl::OkStatus();
}

template <typename T>
const T* DeviceSampler::Put(const std::vector<T>& values,
                            PinnedMemory* staged) {
  const size_t begin = used_, bytes = values.size() * sizeof(T);
  used_ += Aligned(bytes);
  CHECK_LE(used_, staged->bytes());
  if (bytes > 0) {
    std::memcpy(static_cast<std::byte*>(staged->data()) + begin, values.data(),
                bytes);
  }
  return reinterpret_cast<const T*>(on_device_ + begin);
}

absl::Status DeviceSampler::Launch(int flight, const StepPlan& plan,
                                   absl::Span<const LogitsRow> rows,
                                   const Logits& logits, uint32_t* ids,
                                   StepMasks* masks, CudaStream* stream) {
  Flight& of = flights_[flight];
  rows_.Clear();
  of.places.resize(rows.size());
  // The host may not know all tokens of the former: the device must take them.
  AddRows(/*need_host=*/false, plan, rows, masks, &of);
  AddRows(/*need_host=*/true, plan, rows, masks, &of);
  of.scored = rows_.scored();
  return LaunchKernels(&of, logits, ids, stream);
}

void DeviceSampler::AddRows(bool need_host, const StepPlan& plan,
                            absl::Span<const LogitsRow> rows, StepMasks* masks,
                            Flight* flight) {
  for (size_t i = 0; i < rows.size(); ++i) {
    const SequenceSpan& span = plan.spans[rows[i].span];
    if (NeedsHost(span) != need_host) continue;
    flight->places[i] = Add(static_cast<int>(i), rows[i], span, masks);
  }
}

DeviceSampler::Place DeviceSampler::Add(int index, const LogitsRow& row,
                                        const SequenceSpan& span,
                                        StepMasks* masks) {
  const Sequence& sequence = *span.sequence;
  Place place = {.span = row.span};
  if (row.is_prompt) {
    place.prompt_place = row.position - span.prompt_logits_begin;
    rows_.AddPrompt(
        index, sequence.tokens()[row.position + 1],
        static_cast<int>(sequence.sampling().prompt_logprobs_plus_one()) - 1);
    return place;
  }
  const auto output_position =
      static_cast<uint32_t>(row.position + 1 - sequence.num_prompt_tokens());
  place.is_taken = rows_.HasRoomFor(sequence, output_position);
  if (!place.is_taken) return place;
  TokenMask mask;
  if (masks->HasMask(row.span)) {
    const auto found = masks->MaskOf(row.span);
    if (!found.ok()) {
      LOG(WARNING) << "request " << sequence.id().request
                   << " ends at its grammar: " << found.status();
      place.has_ended = true;
      return place;
    }
    mask = *found;
    place.has_mask = true;
  }
  rows_.AddChoice(index, sequence, output_position, mask);
  return place;
}

absl::Status DeviceSampler::LaunchKernels(Flight* flight, const Logits& logits,
                                          uint32_t* ids, CudaStream* stream) {
  PinnedMemory* const staged = flight->staged.get();
  used_ = 0;
  const cuda::AdjustArgs adjust = {
      .logits = logits.data,
      .stride = logits.stride,
      .vocabulary = limits_.vocab_size,
      .rows = Put(rows_.adjusted(), staged),
      .count = static_cast<int>(rows_.adjusted().size()),
      .adjustments = Put(rows_.adjustments(), staged),
      .masks = Put(rows_.masks(), staged),
      .kept = kept_};
  const cuda::SampledRow* const sampled = Put(rows_.sampled(), staged);
  const cuda::ScoredRow* const scored = Put(rows_.scored(), staged);
  if (used_ == 0) return absl::OkStatus();
  LOCKSTEP_RETURN_IF_ERROR(stream->CopyToDevice(
      reinterpret_cast<CudaApi::Address>(on_device_), staged->data(), used_));
  const auto check = [&](cuda::CudaError error, const char* kernel) {
    return stream->device().Check(error, kernel);
  };
  LOCKSTEP_RETURN_IF_ERROR(
      check(cuda::AdjustLogits(adjust, stream->handle()), "AdjustLogits"));
  LOCKSTEP_RETURN_IF_ERROR(check(
      cuda::SampleTokens(logits.data, logits.stride, limits_.vocab_size,
                         sampled, static_cast<int>(rows_.sampled().size()), ids,
                         stream->handle()),
      "SampleTokens"));
  if (rows_.scored().empty()) return absl::OkStatus();
  LOCKSTEP_RETURN_IF_ERROR(
      check(cuda::RestoreLogits(adjust, stream->handle()), "RestoreLogits"));
  const size_t num_scored = rows_.scored().size();
  LOCKSTEP_RETURN_IF_ERROR(
      check(cuda::ScoreRows(logits.data, logits.stride, limits_.vocab_size,
                            scored, static_cast<int>(num_scored), ids, scores_,
                            stream->handle()),
            "ScoreRows"));
  return stream->CopyToHost(flight->scores->data(),
                            reinterpret_cast<CudaApi::Address>(scores_),
                            num_scored * sizeof(cuda::RowLogprobs));
}

void DeviceSampler::Finish(int flight, const uint32_t* host_ids,
                           StepResult* result) const {
  const Flight& of = flights_[flight];
  for (size_t i = 0; i < of.places.size(); ++i) {
    const Place& place = of.places[i];
    SpanResult& out = result->spans[place.span];
    if (host_ids[i] == cuda::kNoFiniteLogit) out.is_finite = false;
    if (!place.is_taken || place.prompt_place >= 0) continue;
    out.token = place.has_ended ? kNoToken : host_ids[i];
  }
  const auto* scores = static_cast<cuda::RowLogprobs*>(of.scores->data());
  for (const cuda::ScoredRow& row : of.scored) {
    const Place& place = of.places[row.row];
    const cuda::RowLogprobs& score = *scores++;
    SpanResult& out = result->spans[place.span];
    if (!out.is_finite) continue;
    if (place.prompt_place >= 0) {
      out.prompt_logprobs[place.prompt_place] =
          LogprobsOf(score, row.token, /*has_mask=*/false);
    } else {
      out.logprobs.push_back(LogprobsOf(score, out.token, place.has_mask));
    }
  }
}

}  // namespace lockstep
