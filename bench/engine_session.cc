#include "bench/engine_session.h"

#include <absl/types/span.h>
#include <glog/logging.h>

#include <map>
#include <utility>

#include "common/status_macros.h"
#include "proto/group.pb.h"

namespace lockstep::bench {
namespace {

bool IsDecode(const StepPlan& plan) {
  return plan.num_tokens == plan.spans.size() &&
         plan.num_logits_rows == plan.spans.size();
}

v1::RankMessage MakeMessage(uint64_t number,
                            const EngineSession::Request& request) {
  v1::RankMessage message;
  v1::AddRequest& add = *message.mutable_add();
  add.set_request(number);
  add.mutable_prompt_token_ids()->Assign(request.prompt.begin(),
                                         request.prompt.end());
  add.set_bypass_prefix_cache(!request.uses_prefix_cache);
  add.set_grammar(request.grammar);
  v1::ResolvedSampling& sampling = *add.mutable_sampling();
  sampling.set_top_p(1);
  sampling.set_repetition_penalty(1);
  sampling.set_max_tokens(request.max_tokens);
  sampling.set_n(1);
  return message;
}

}  // namespace

class EngineSession::Recorder final : public OutputSink {
 public:
  void Add(uint64_t number, size_t max_tokens) {
    Stream& stream = streams_[number];
    stream.tokens.reserve(max_tokens);
    stream.added = Clock::now();
  }
  const Stream& stream(uint64_t number) const { return streams_.at(number); }

  void OnFirstScheduled(SequenceId, int) override {}
  void OnPromptLogprobs(SequenceId,
                        std::vector<v1::PositionLogprobs>) override {}
  void OnToken(SequenceId id, uint32_t,
               std::vector<v1::PositionLogprobs>) override {
    streams_[id.request].tokens.push_back(Clock::now());
  }
  void OnFinish(SequenceId id, v1::FinishReason,
                std::optional<uint32_t>) override {
    streams_[id.request].is_finished = true;
  }

 private:
  std::map<uint64_t, Stream> streams_;
};

EngineSession::EngineSession(std::unique_ptr<Rank> rank)
    : rank_(std::move(rank)) {}

EngineSession::~EngineSession() = default;

absl::StatusOr<std::unique_ptr<EngineSession>> EngineSession::Open(
    const RankOptions& options) {
  LOCKSTEP_ASSIGN_OR_RETURN(auto rank, Rank::Open(options));
  LOCKSTEP_RETURN_IF_ERROR(rank->StartKernels());
  LOCKSTEP_RETURN_IF_ERROR(rank->OpenCollective(/*host=*/""));
  LOCKSTEP_ASSIGN_OR_RETURN(const v1::Hello hello, rank->hello());
  LOCKSTEP_RETURN_IF_ERROR(rank->Agree(hello.num_pages()));
  LOCKSTEP_RETURN_IF_ERROR(rank->Load());
  std::unique_ptr<EngineSession> session(new EngineSession(std::move(rank)));
  session->Start();
  return session;
}

void EngineSession::Start() {
  scheduler_.reset();
  recorder_ = std::make_unique<Recorder>();
  scheduler_.emplace(rank_->scheduler_options(), recorder_.get());
  num_streams_ = 0;
  steps_.clear();
}

uint64_t EngineSession::Add(const Request& request) {
  const uint64_t number = ++num_streams_;
  recorder_->Add(number, request.max_tokens);
  CHECK(scheduler_->Apply(MakeMessage(number, request)).ok());
  return number;
}

absl::Status EngineSession::Step() {
  const Clock::time_point begin = Clock::now();
  const StepPlan& plan = scheduler_->Plan();
  StepRecord record = {.sequences = static_cast<int>(plan.spans.size()),
                       .is_decode = IsDecode(plan),
                       .work = WorkOf(plan)};
  result_.spans.resize(plan.spans.size());
  if (!plan.empty()) {
    LOCKSTEP_RETURN_IF_ERROR(rank_->engine()->Execute(plan, &result_));
  }
  scheduler_->Commit(result_);
  record.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  steps_.push_back(record);
  return absl::OkStatus();
}

const EngineSession::Stream& EngineSession::stream(uint64_t number) const {
  return recorder_->stream(number);
}

}  // namespace lockstep::bench
