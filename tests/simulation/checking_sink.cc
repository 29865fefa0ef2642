#include "tests/simulation/checking_sink.h"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <optional>
#include <string>

#include "tests/testing/fake_engine.h"
#include "worker/scheduler/scheduler_options.h"

namespace lockstep::testing {

void CheckingSink::Arrived(const v1::AddRequest& add, uint64_t step) {
  Request& request = requests_[add.request()];
  request.add = add;
  request.choices.resize(add.sampling().n());
  rows_run_out_ |= add.sampling().prompt_logprobs_plus_one() > 0;
  const Due due = {
      static_cast<int64_t>(step) + int64_t{kStepsPerPriority} * add.priority(),
      add.request()};
  due_[add.request()] = due;
  waiting_.insert(due);
}

void CheckingSink::Aborted(uint64_t number) {
  const auto entry = requests_.find(number);
  if (entry == requests_.end()) {
    totals_.set_aborted_unknown(totals_.aborted_unknown() + 1);
    return;
  }
  Request& request = entry->second;
  request.aborted = true;
  const auto any = [&](auto is) {
    return std::any_of(request.choices.begin(), request.choices.end(), is);
  };
  if (!any([](const Choice& choice) { return !choice.ended(); })) {
    totals_.set_aborted_ended(totals_.aborted_ended() + 1);
  } else if (any([](const Choice& choice) { return !choice.tokens.empty(); })) {
    totals_.set_aborted_in_decode(totals_.aborted_in_decode() + 1);
  } else if (any([](const Choice& choice) { return choice.started; })) {
    totals_.set_aborted_in_prefill(totals_.aborted_in_prefill() + 1);
  } else {
    totals_.set_aborted_waiting(totals_.aborted_waiting() + 1);
  }
}

CheckingSink::Choice* CheckingSink::Live(SequenceId id, const char* event) {
  const auto entry = requests_.find(id.request);
  if (entry == requests_.end() || id.choice >= entry->second.choices.size()) {
    Broken(id, absl::StrCat(event, " of a sequence that never came"));
    return nullptr;
  }
  Choice& choice = entry->second.choices[id.choice];
  if (!choice.ended()) return &choice;
  Broken(id, absl::StrCat(event, " after its terminal event"));
  return nullptr;
}

void CheckingSink::Broken(SequenceId id, const std::string& what) {
  status_.Update(absl::InternalError(absl::StrCat(
      "request ", id.request, ", choice ", id.choice, ": ", what, ".")));
}

void CheckingSink::OnFirstScheduled(SequenceId id, int cached_tokens) {
  Choice* const choice = Live(id, "a start");
  if (choice == nullptr) return;
  if (choice->started) return Broken(id, "it starts twice");
  choice->started = true;
  totals_.set_cached_tokens(totals_.cached_tokens() + cached_tokens);
  const auto due = due_.find(id.request);
  if (due == due_.end()) return;
  if (*waiting_.begin() < due->second && !rows_run_out_) {
    Broken(id,
           absl::StrCat("it starts before request ", waiting_.begin()->second,
                        ", which was due earlier"));
  }
  waiting_.erase(due->second);
  due_.erase(due);
}

void CheckingSink::OnToken(SequenceId id, uint32_t token,
                           std::vector<v1::PositionLogprobs>) {
  Choice* const choice = Live(id, "a token");
  if (choice == nullptr) return;
  if (!choice->started) return Broken(id, "a token before its start");
  choice->tokens.push_back(token);
  totals_.set_tokens(totals_.tokens() + 1);
}

void CheckingSink::OnFinish(SequenceId id, v1::FinishReason reason,
                            std::optional<uint32_t>) {
  Choice* const choice = Live(id, "an end");
  if (choice == nullptr) return;
  choice->reason = reason;
  const Request& request = requests_[id.request];
  if (reason == v1::LENGTH) {
    totals_.set_ended_by_length(totals_.ended_by_length() + 1);
  } else if (reason == v1::STOP) {
    totals_.set_ended_by_stop(totals_.ended_by_stop() + 1);
  } else if (reason != v1::ABORTED || !request.aborted) {
    return Broken(id, absl::StrCat("it ends with reason ", reason));
  }
  const auto due = due_.find(id.request);
  if (due == due_.end()) return;
  if (std::all_of(request.choices.begin(), request.choices.end(),
                  [](const Choice& other) { return other.ended(); })) {
    waiting_.erase(due->second);
    due_.erase(due);
  }
}

absl::Status CheckingSink::CheckAllEnded(int max_context,
                                         uint32_t vocabulary_size) const {
  for (const auto& [number, request] : requests_) {
    for (uint32_t i = 0; i < request.choices.size(); ++i) {
      const Choice& choice = request.choices[i];
      if (!choice.ended()) {
        return absl::InternalError(absl::StrCat("request ", number, ", choice ",
                                                i, " has no terminal event."));
      }
      const FakeOutput alone =
          ContinueAlone(request.add, i, max_context, vocabulary_size);
      const bool is_beginning =
          choice.tokens.size() <= alone.tokens.size() &&
          std::equal(choice.tokens.begin(), choice.tokens.end(),
                     alone.tokens.begin());
      const bool is_whole = choice.tokens.size() == alone.tokens.size() &&
                            choice.reason == alone.reason;
      if (is_beginning && (is_whole || choice.reason == v1::ABORTED)) continue;
      return absl::InternalError(absl::StrCat(
          "request ", number, ", choice ", i, " got other tokens than alone."));
    }
  }
  return absl::OkStatus();
}

}  // namespace lockstep::testing
