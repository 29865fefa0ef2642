#include "tests/testing/async_device/device_step.h"

#include <absl/strings/str_cat.h>
#include <absl/types/span.h>

#include <utility>

#include "common/status_macros.h"
#include "tests/testing/fake_engine.h"
#include "worker/core/host_part.h"

namespace lockstep::testing {
namespace {

template <typename... Parts>
absl::Status Broken(SequenceId id, const Parts&... parts) {
  return absl::InternalError(absl::StrCat("request ", id.request, ", choice ",
                                          id.choice, ": ", parts..., "."));
}

absl::Status CheckToken(const SequenceSpan& span, const DeviceStep* before) {
  const SequenceId id = span.sequence->id();
  const bool is_there = before != nullptr &&
                        span.token_from < before->jobs.size() &&
                        before->jobs[span.token_from].span.samples &&
                        before->jobs[span.token_from].id == id;
  if (!is_there) {
    return Broken(id, "the step before does not sample its token as span ",
                  span.token_from);
  }
  if (span.sequence->request().grammar() == 0) return absl::OkStatus();
  return Broken(id, "its grammar needs the token on the host");
}

// The job of the same sequence that computes what comes right before `span`.
int JobBefore(const SequenceSpan& span, const DeviceStep* before) {
  if (before == nullptr) return -1;
  for (size_t i = 0; i < before->jobs.size(); ++i) {
    const DeviceJob& job = before->jobs[i];
    if (job.id == span.sequence->id() &&
        job.span.begin + job.span.count == span.begin) {
      return static_cast<int>(i);
    }
  }
  return -1;
}

DeviceJob MakeJob(const SequenceSpan& span, const DeviceStep* before) {
  const Sequence& sequence = *span.sequence;
  const auto& sampling = sequence.sampling();
  DeviceJob job;
  job.id = sequence.id();
  job.span = span;
  job.span.sequence = nullptr;
  job.sampling.set_seed(sampling.seed());
  job.sampling.set_logprobs_plus_one(sampling.logprobs_plus_one());
  job.sampling.set_prompt_logprobs_plus_one(
      sampling.prompt_logprobs_plus_one());
  job.embedding = sequence.request().embedding();
  job.page_table.assign(sequence.pages().begin(), sequence.pages().end());
  const auto tokens = sequence.tokens();
  const int known = span.token_from < 0 ? span.count : span.count - 1;
  for (int i = 0; i < known; ++i) {
    job.tokens.push_back(tokens.at(span.begin + i));
  }
  job.tokens.resize(span.count);
  for (int i = span.prompt_logits_begin; i < span.prompt_logits_end; ++i) {
    job.scored.push_back(tokens.at(i + 1));
  }
  job.after = JobBefore(span, before);
  return job;
}

void FillResult(absl::Span<const uint32_t> context, uint32_t vocabulary_size,
                DeviceJob* job) {
  const SequenceSpan& span = job->span;
  const v1::ResolvedSampling& sampling = job->sampling;
  SpanResult& result = job->result;
  if (span.embeds) result.embedding = FakeEmbedding(context, job->embedding);
  for (size_t i = 0; i < job->scored.size(); ++i) {
    result.prompt_logprobs.push_back(
        FakeLogprobs(context.first(span.prompt_logits_begin + i + 1),
                     job->scored[i], sampling.prompt_logprobs_plus_one() - 1));
  }
  if (!span.samples) return;
  result.token = FakeToken(context, sampling, job->id.choice, vocabulary_size);
  if (sampling.logprobs_plus_one() > 0) {
    result.logprobs.push_back(
        FakeLogprobs(context, result.token, sampling.logprobs_plus_one() - 1));
  }
}

}  // namespace

absl::StatusOr<std::shared_ptr<DeviceStep>> MakeDeviceStep(
    const StepPlan& plan, std::shared_ptr<DeviceStep> before) {
  auto step = std::make_shared<DeviceStep>();
  for (const SequenceSpan& span : plan.spans) {
    if (span.token_from >= 0) {
      LOCKSTEP_RETURN_IF_ERROR(CheckToken(span, before.get()));
    }
    step->jobs.push_back(MakeJob(span, before.get()));
    step->needs_host |= NeedsHost(span);
  }
  step->left = step->jobs.size();
  step->before = std::move(before);
  return step;
}

bool CanRun(const DeviceStep& step, const DeviceJob& job) {
  if (job.has_run) return false;
  return job.after < 0 || step.before->jobs[job.after].has_run;
}

absl::Status RunJob(const DeviceStep& step, uint32_t vocabulary_size,
                    DeviceMemory* memory, DeviceJob* job) {
  const SequenceSpan& span = job->span;
  if (span.token_from >= 0) {
    job->tokens.back() = step.before->jobs[span.token_from].result.token;
  }
  memory->Write(job->page_table, span.begin, job->tokens);
  if (!span.samples && !span.embeds && job->scored.empty()) {
    return absl::OkStatus();
  }
  std::vector<uint32_t> context;
  const absl::Status read =
      memory->Read(job->page_table, span.begin + span.count, &context);
  if (!read.ok()) return Broken(job->id, read.message());
  FillResult(context, vocabulary_size, job);
  return absl::OkStatus();
}

}  // namespace lockstep::testing
