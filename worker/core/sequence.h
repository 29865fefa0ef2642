#pragma once

#include <absl/types/span.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "proto/group.pb.h"

namespace lockstep {

// Choices that one request may ask for.
inline constexpr uint32_t kMaxChoices = 128;

// One choice of one request.
struct SequenceId {
  uint64_t request = 0;
  uint32_t choice = 0;

  friend auto operator<=>(const SequenceId&, const SequenceId&) = default;
};

// Of the request's resume tokens those of one choice.
absl::Span<const uint32_t> ResumeTokens(const v1::AddRequest& request,
                                        uint32_t choice);

// Whether an earlier call ended the choice.
bool HasEnded(const v1::AddRequest& request, uint32_t choice);

// What an engine keeps of a sequence besides its keys and values.
class SequenceState {
 public:
  virtual ~SequenceState() = default;
};

// The tokens, pages and progress of one choice, from its arrival to its end.
// Owned and changed by the scheduler; the engine reads it during a step.
//
// Positions 0 … num_computed() - 1 have keys and values in pages(); the tokens
// after them wait to be computed. When only one waits, and it is the last, the
// sequence decodes.
class Sequence {
 public:
  // Output begins with the choice's resume tokens.
  Sequence(SequenceId id, std::shared_ptr<const v1::AddRequest> request);

  SequenceId id() const { return id_; }
  const v1::AddRequest& request() const { return *request_; }
  const v1::ResolvedSampling& sampling() const { return request_->sampling(); }

  // Prompt, then output.
  absl::Span<const uint32_t> tokens() const { return tokens_; }
  int num_tokens() const { return static_cast<int>(tokens_.size()); }
  int num_prompt_tokens() const { return request_->prompt_token_ids_size(); }
  int num_output_tokens() const { return num_tokens() - num_prompt_tokens(); }
  absl::Span<const uint32_t> output() const {
    return tokens().subspan(num_prompt_tokens());
  }

  // Nothing is sampled: it ends, with an embedding, when it is computed.
  bool is_embedded() const { return request_->has_embedding(); }

  int num_computed() const { return num_computed_; }
  absl::Span<const int32_t> pages() const { return pages_; }

  // The engine's own, while the sequence lives; empty until it puts one there.
  std::unique_ptr<SequenceState>& engine_state() const { return engine_state_; }

  // For the scheduler.
  // Makes room, so that a decoding sequence allocates no memory as it grows.
  void Reserve(int num_tokens, int num_pages);
  void AppendToken(uint32_t token) { tokens_.push_back(token); }
  void set_num_computed(int count) { num_computed_ = count; }
  std::vector<int32_t>& mutable_pages() { return pages_; }

 private:
  const SequenceId id_;
  const std::shared_ptr<const v1::AddRequest> request_;
  std::vector<uint32_t> tokens_;
  std::vector<int32_t> pages_;  // the page table, in order of position
  int num_computed_ = 0;
  mutable std::unique_ptr<SequenceState> engine_state_;
};

}  // namespace lockstep
