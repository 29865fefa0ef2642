#include "bench/workload_runner.h"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <utility>

#include "common/status_macros.h"

namespace lockstep::bench {
namespace {

constexpr int kBatchTokens = 128;   // of a prompt and of its answer
constexpr int kContextTokens = 64;  // after the context
constexpr int kPrefixTokens = 512;  // that all requests share
constexpr int kPrefixRequests = 16;
constexpr int kOwnTokens = 32;  // after the prefix, and of the answer

struct Need {
  int context = 0;
  int sequences = 1;
};

Need NeedOf(const Workload& workload) {
  const Traffic traffic;
  switch (workload.kind) {
    case Workload::Kind::kPrefill:
    case Workload::Kind::kDecode:
      return {.context = workload.size + 1};
    case Workload::Kind::kBatch:
      return {.context = 2 * kBatchTokens, .sequences = workload.size};
    case Workload::Kind::kContext:
      return {.context = workload.size + kContextTokens + 1};
    case Workload::Kind::kServe:
      return {.context = traffic.prompt_tokens + traffic.output_tokens,
              .sequences = workload.size};
    case Workload::Kind::kPrefixCache:
      return {.context = kPrefixTokens + 2 * kOwnTokens,
              .sequences = kPrefixRequests};
    case Workload::Kind::kLoad:
      return {};
  }
  return {};
}

double SecondsBetween(Clock::time_point begin, Clock::time_point end) {
  return std::chrono::duration<double>(end - begin).count();
}

double SecondsOf(const std::vector<EngineSession::StepRecord>& steps) {
  double seconds = 0;
  for (const EngineSession::StepRecord& step : steps) seconds += step.seconds;
  return seconds;
}

}  // namespace

absl::Status WorkloadRunner::CheckFits(const Workload& workload) const {
  const Need need = NeedOf(workload);
  if (need.context > session_->max_context()) {
    return absl::OutOfRangeError(
        absl::StrCat(workload.name, " takes a context of ", need.context,
                     " tokens; the model, or its KV cache, has one of ",
                     session_->max_context(), "."));
  }
  if (need.sequences > session_->max_sequences()) {
    return absl::OutOfRangeError(
        absl::StrCat(workload.name, " runs ", need.sequences,
                     " sequences at once; --max_sequences is ",
                     session_->max_sequences(), "."));
  }
  return absl::OkStatus();
}

absl::StatusOr<RunResult> WorkloadRunner::Run(const Workload& workload) {
  const bool keeps_cache = workload.kind == Workload::Kind::kContext &&
                           cached_context_ == workload.size;
  if (!keeps_cache) {
    session_->Start();
    cached_context_ = 0;
  }
  random_.seed(workload.size);
  switch (workload.kind) {
    case Workload::Kind::kPrefill:
      return RunPrefill(workload.size);
    case Workload::Kind::kDecode:
      return RunDecode(workload.size);
    case Workload::Kind::kBatch:
      return RunBatch(workload.size);
    case Workload::Kind::kContext:
      return RunContext(workload.size);
    case Workload::Kind::kServe:
      return RunServe({.clients = workload.size});
    case Workload::Kind::kPrefixCache:
      return RunPrefixCache(workload.uses_prefix_cache);
    case Workload::Kind::kLoad:
      break;
  }
  return absl::InternalError(
      absl::StrCat(workload.name, " does not run on a session."));
}

std::vector<uint32_t> WorkloadRunner::Prompt(int tokens) {
  std::uniform_int_distribution<uint32_t> ids(0, options_.vocab_size - 1);
  std::vector<uint32_t> prompt(tokens);
  for (uint32_t& id : prompt) id = ids(random_);
  return prompt;
}

absl::Status WorkloadRunner::RunUntilIdle() {
  while (session_->HasWork()) LOCKSTEP_RETURN_IF_ERROR(session_->Step());
  return absl::OkStatus();
}

absl::StatusOr<RunResult> WorkloadRunner::RunPrefill(int tokens) {
  session_->Add({.prompt = Prompt(tokens), .max_tokens = 1});
  LOCKSTEP_RETURN_IF_ERROR(RunUntilIdle());
  return Sum(session_->steps(), tokens, SecondsOf(session_->steps()));
}

absl::StatusOr<RunResult> WorkloadRunner::RunDecode(int tokens) {
  session_->Add({.prompt = Prompt(1), .max_tokens = tokens});
  LOCKSTEP_RETURN_IF_ERROR(RunUntilIdle());
  return Sum(session_->steps(), tokens, SecondsOf(session_->steps()));
}

absl::StatusOr<RunResult> WorkloadRunner::RunBatch(int sequences) {
  for (int i = 0; i < sequences; ++i) {
    session_->Add({.prompt = Prompt(kBatchTokens), .max_tokens = kBatchTokens});
  }
  LOCKSTEP_RETURN_IF_ERROR(RunUntilIdle());
  return SumDecode(0, sequences);
}

// Only the first run computes the context: the next ones find it in the cache.
absl::StatusOr<RunResult> WorkloadRunner::RunContext(int tokens) {
  const size_t first = session_->steps().size();
  session_->Add({.prompt = Prompt(tokens),
                 .max_tokens = kContextTokens + 1,
                 .uses_prefix_cache = true});
  LOCKSTEP_RETURN_IF_ERROR(RunUntilIdle());
  cached_context_ = tokens;
  return SumDecode(first, 1);
}

absl::StatusOr<RunResult> WorkloadRunner::RunServe(const Traffic& traffic) {
  struct Client {
    int rounds_begun = 0;
    uint64_t stream = 0;
  };
  std::vector<Client> clients(traffic.clients);
  const Clock::time_point begin = Clock::now();
  bool all_done = false;
  while (!all_done) {
    all_done = true;
    for (int i = 0; i < traffic.clients; ++i) {
      Client& client = clients[i];
      const bool is_due = client.rounds_begun == 0
                              ? Clock::now() >= begin + i * traffic.stagger
                              : session_->stream(client.stream).is_finished;
      const bool is_done = is_due && client.rounds_begun == traffic.rounds;
      all_done = all_done && is_done;
      if (!is_due || is_done) continue;
      client.stream = session_->Add({.prompt = Prompt(traffic.prompt_tokens),
                                     .max_tokens = traffic.output_tokens});
      ++client.rounds_begun;
    }
    if (session_->HasWork()) LOCKSTEP_RETURN_IF_ERROR(session_->Step());
  }
  const double tokens =
      1.0 * traffic.clients * traffic.rounds * traffic.output_tokens;
  RunResult result =
      Sum(session_->steps(), tokens, SecondsBetween(begin, Clock::now()));
  AddLatencies(1, &result);
  return result;
}

absl::StatusOr<RunResult> WorkloadRunner::RunPrefixCache(
    bool uses_prefix_cache) {
  const std::vector<uint32_t> prefix = Prompt(kPrefixTokens);
  const auto add = [&] {
    std::vector<uint32_t> prompt = prefix;
    for (uint32_t id : Prompt(kOwnTokens)) prompt.push_back(id);
    session_->Add({.prompt = std::move(prompt),
                   .max_tokens = kOwnTokens,
                   .uses_prefix_cache = uses_prefix_cache});
  };
  add();
  LOCKSTEP_RETURN_IF_ERROR(RunUntilIdle());
  const size_t first = session_->steps().size();
  for (int i = 0; i < kPrefixRequests; ++i) add();
  LOCKSTEP_RETURN_IF_ERROR(RunUntilIdle());

  const std::vector<EngineSession::StepRecord> steps(
      session_->steps().begin() + first, session_->steps().end());
  RunResult result = Sum(steps, kPrefixRequests * kOwnTokens, SecondsOf(steps));
  AddLatencies(2, &result);
  return result;
}

RunResult WorkloadRunner::Sum(
    const std::vector<EngineSession::StepRecord>& steps, double tokens,
    double seconds) const {
  RunResult result;
  std::map<std::string, double> seconds_of;
  double roof_seconds = 0;
  for (const EngineSession::StepRecord& step : steps) {
    const Roof roof = RoofOf(step.work, options_.cost, options_.arithmetic,
                             options_.ceilings);
    roof_seconds += roof.seconds;
    seconds_of[roof.bound] += roof.seconds;
    result.computed_tokens += step.work.tokens;
    result.step_s.push_back(step.seconds);
  }
  result.tokens_per_s = tokens / seconds;
  result.roof_tokens_per_s = tokens / roof_seconds;
  result.bound = std::max_element(seconds_of.begin(), seconds_of.end(),
                                  [](const auto& a, const auto& b) {
                                    return a.second < b.second;
                                  })
                     ->first;
  return result;
}

RunResult WorkloadRunner::SumDecode(size_t first, int sequences) const {
  std::vector<EngineSession::StepRecord> steps;
  for (size_t i = first; i < session_->steps().size(); ++i) {
    const EngineSession::StepRecord& step = session_->steps()[i];
    if (step.is_decode && step.sequences == sequences) steps.push_back(step);
  }
  return Sum(steps, 1.0 * steps.size() * sequences, SecondsOf(steps));
}

void WorkloadRunner::AddLatencies(uint64_t first_stream,
                                  RunResult* result) const {
  for (uint64_t i = first_stream; i <= session_->num_streams(); ++i) {
    const EngineSession::Stream& stream = session_->stream(i);
    result->first_token_s.push_back(
        SecondsBetween(stream.added, stream.tokens.front()));
    for (size_t t = 1; t < stream.tokens.size(); ++t) {
      result->inter_token_s.push_back(
          SecondsBetween(stream.tokens[t - 1], stream.tokens[t]));
    }
  }
}

}  // namespace lockstep::bench
