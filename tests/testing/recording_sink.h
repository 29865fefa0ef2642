#pragma once

#include <absl/synchronization/notification.h>

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "frontend/generation/response_sink.h"

namespace lockstep {

// Keeps what it is given, for tests. Read it after the terminal event, or where
// nothing runs concurrently.
class RecordingSink : public ResponseSink {
 public:
  void OnAccepted(AcceptedEvent event) override { accepted = std::move(event); }
  void OnDelta(DeltaEvent event) override {
    texts[event.index] += event.text;
    auto& ids = token_ids[event.index];
    ids.insert(ids.end(), event.token_ids.begin(), event.token_ids.end());
    deltas.push_back(std::move(event));
  }
  void OnFinish(FinishEvent event) override {
    finishes.push_back(std::move(event));
  }
  void OnEmbedding(v1::Embedding vector) override {
    embedding = std::move(vector);
  }
  void OnSummary(SummaryEvent event) override {
    summary = std::move(event);
    ended.Notify();
  }
  void OnError(absl::Status status, int /*failovers*/) override {
    error = std::move(status);
    ended.Notify();
  }
  void AwaitRoom(std::function<void()> resume) override {
    if (const auto hold = std::exchange(hold_back, nullptr)) {
      hold(std::move(resume));
    } else {
      resume();
    }
  }

  // Takes the place of a slow reader once, if set.
  std::function<void(std::function<void()>)> hold_back;

  AcceptedEvent accepted;
  std::vector<DeltaEvent> deltas;
  std::map<uint32_t, std::string> texts;  // by choice
  std::map<uint32_t, std::vector<uint32_t>> token_ids;
  std::vector<FinishEvent> finishes;
  std::optional<v1::Embedding> embedding;
  std::optional<SummaryEvent> summary;
  absl::Status error;
  absl::Notification ended;
};

}  // namespace lockstep
