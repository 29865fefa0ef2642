#pragma once

#include <absl/status/status.h>
#include <absl/strings/string_view.h>
#include <absl/types/span.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "frontend/generation/spec.h"

// What holds for a request whatever protocol it came by: the gateway's own
// limits; those of sampling are the worker's. INVALID_ARGUMENT names the field
// as the client calls it, the value and the limit. Any thread.
namespace lockstep {

inline constexpr size_t kMaxPromptBytes = 8 << 20;
inline constexpr int kMaxChatMessages = 16'384;
// No text has longer tokens on average, so a longer text can not fit the
// context and need not be encoded to know it.
inline constexpr size_t kMaxBytesPerToken = 128;
inline constexpr size_t kMaxTools = 128;
inline constexpr size_t kMaxToolNameBytes = 64;
// What workers refuse above; known here, as an answer is laid out for so many.
inline constexpr uint32_t kMaxChoicesAskedFor = 128;
inline constexpr size_t kMaxEmbedInputs = 2048;
inline constexpr size_t kMaxStopStrings = 16;
inline constexpr size_t kMaxStopStringBytes = 1024;
inline constexpr size_t kMaxBadWords = 128;
inline constexpr size_t kMaxBadWordBytes = 128;

// NOT_FOUND, reason model_not_found, names the model there is.
absl::Status CheckModelName(absl::string_view name, const ServedModel& model);

// UNIMPLEMENTED where the model makes embeddings alone.
absl::Status CheckGenerates(const ServedModel& model);

absl::Status CheckNumberOfMessages(absl::string_view field, size_t number);

// Of the tools of a chat.
absl::Status CheckToolNames(absl::string_view field,
                            absl::Span<const std::string> names);

// Of a prompt as it came, before it is rendered and encoded, and cut where it
// is to be.
absl::Status CheckPrompt(const PromptSpec& prompt, const Truncation& truncation,
                         const ServedModel& model);

// Of a prompt that leaves room for an answer.
absl::Status CheckTruncation(const Truncation& truncation,
                             const ServedModel& model);

// Of an input to embed, which may fill the context, or be cut to fit it.
// UNIMPLEMENTED where the model makes no embeddings.
absl::Status CheckEmbedSpec(const EmbedSpec& spec);

// Of an embedding of each input, as the request wants it or the model makes it.
// REQUIRES: CheckEmbedSpec.
size_t NumValues(const EmbedSpec& spec);

absl::Status CheckTokenIds(absl::string_view field,
                           absl::Span<const uint32_t> ids,
                           const ServedModel& model);

absl::Status CheckDetokenize(absl::string_view field,
                             const DetokenizeSpec& spec,
                             const ServedModel& model);

absl::Status CheckStop(absl::Span<const std::string> stop);

absl::Status CheckBadWords(absl::Span<const std::string> words);

}  // namespace lockstep
