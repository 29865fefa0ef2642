#include "worker/engine/pooler.h"

#include <absl/strings/str_cat.h>
#include <absl/types/span.h>
#include <glog/logging.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "common/status_macros.h"
#include "proto/group.pb.h"
#include "worker/core/sequence.h"

namespace lockstep {
namespace {

// As PyTorch's normalize has it, for a vector of zeros.
constexpr double kLeastLength = 1e-12;

struct MeanState final : SequenceState {
  explicit MeanState(int hidden_size) : sums(hidden_size) {}

  std::vector<double> sums;
  int num_positions = 0;
};

double LengthOf(absl::Span<const double> values) {
  double squares = 0;
  for (const double value : values) squares += value * value;
  return std::max(std::sqrt(squares), kLeastLength);
}

// The sums over all positions up to the span's last.
absl::Span<const double> AddToSums(const SequenceSpan& span,
                                   const float* hidden_states,
                                   int hidden_size) {
  std::unique_ptr<SequenceState>& state = span.sequence->engine_state();
  // Preempted, a sequence begins anew.
  if (span.begin == 0) state = std::make_unique<MeanState>(hidden_size);
  MeanState& mean = static_cast<MeanState&>(*state);
  CHECK_EQ(mean.num_positions, span.begin) << "a mean with a gap";
  for (int i = 0; i < span.count; ++i) {
    for (double& sum : mean.sums) sum += *hidden_states++;
  }
  mean.num_positions += span.count;
  return mean.sums;
}

}  // namespace

absl::Status Pooler::Pool(const StepPlan& plan, HiddenStatesOf hidden_states_of,
                          StepResult* result) {
  int first_token = 0;
  for (size_t i = 0; i < plan.spans.size(); ++i) {
    const SequenceSpan& span = plan.spans[i];
    if (span.sequence != nullptr && span.sequence->is_embedded()) {
      LOCKSTEP_RETURN_IF_ERROR(
          PoolSpan(span, first_token, hidden_states_of, &result->spans[i]));
    }
    first_token += span.count;
  }
  return absl::OkStatus();
}

absl::Status Pooler::PoolSpan(const SequenceSpan& span, int first_token,
                              HiddenStatesOf hidden_states_of,
                              SpanResult* result) {
  const v1::ResolvedEmbedding& wanted = span.sequence->request().embedding();
  if (wanted.dimensions() > static_cast<uint32_t>(hidden_size_)) {
    return absl::InternalError(
        absl::StrCat("request ", span.sequence->id().request,
                     " asks for an embedding of ", wanted.dimensions(),
                     " values, hidden states have ", hidden_size_, "."));
  }
  if (wanted.pooling() == v1::MEAN) {
    const absl::Span<const double> sums = AddToSums(
        span, hidden_states_of(first_token, span.count), hidden_size_);
    values_.assign(sums.begin(), sums.end());
    const double count = span.begin + span.count;
    for (double& value : values_) value /= count;
  } else if (span.embeds) {
    const float* last =
        hidden_states_of(first_token + span.count - 1, /*count=*/1);
    values_.assign(last, last + hidden_size_);
  }
  if (!span.embeds) return absl::OkStatus();
  values_.resize(wanted.dimensions());
  const double divisor = wanted.normalize() ? LengthOf(values_) : 1;
  std::vector<float>& embedding = result->embedding;
  embedding.resize(values_.size());
  std::transform(
      values_.begin(), values_.end(), embedding.begin(),
      [divisor](double value) { return static_cast<float>(value / divisor); });
  result->is_finite =
      std::all_of(embedding.begin(), embedding.end(),
                  [](float value) { return std::isfinite(value); });
  return absl::OkStatus();
}

}  // namespace lockstep
