#pragma once

#include <absl/status/status.h>

#include <optional>

#include "frontend/generation/choice_stream.h"
#include "frontend/generation/spec.h"
#include "proto/grammar.pb.h"

namespace lockstep {

// The grammar of a request's answer, from its constraint and its tools; none
// where nothing limits it. `reading` is that of a chat, else null. A pure
// function.
std::optional<v1::Grammar> GrammarOf(const GenerateSpec& spec,
                                     const ChatReading* reading);

// What the worker says of that grammar, in the client's words: it names the
// field from which it was made.
absl::Status InClientsWords(const absl::Status& status,
                            const GenerateSpec& spec);

}  // namespace lockstep
