#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "proto/embedding.pb.h"
#include "proto/sampling.pb.h"

namespace lockstep {

// What a group says that it serves.
struct ServedModel {
  std::string name;
  uint32_t max_context_tokens = 0;
  uint32_t vocabulary_size = 0;  // of the logits; the tokenizer may know fewer
  std::string fingerprint = {};  // of all that decides the bits of an answer
  std::string version = {};      // of the worker
  int64_t kv_capacity_tokens = 0;
  // Of embeddings; none, for this reason.
  std::optional<v1::EmbeddingInfo> embedding = std::nullopt;
  std::string no_embedding = {};
  std::string no_generation = {};            // empty: it generates
  v1::SamplingParams default_sampling = {};  // the model's own
};

// What clients see of the fingerprint, as OpenAI's API calls it; empty where
// the worker has none.
inline std::string SystemFingerprint(const ServedModel& model) {
  constexpr size_t kShownDigits = 16;
  if (model.fingerprint.empty()) return "";
  return "fp_" + model.fingerprint.substr(0, kShownDigits);
}

// Whether groups that serve these give the same bits for the same request, so
// that one may go on with the other's answer. Without max_tokens the context
// is where an answer ends.
inline bool GiveTheSameBits(const ServedModel& a, const ServedModel& b) {
  return !a.fingerprint.empty() && a.fingerprint == b.fingerprint &&
         a.version == b.version && a.name == b.name &&
         a.max_context_tokens == b.max_context_tokens;
}

}  // namespace lockstep
