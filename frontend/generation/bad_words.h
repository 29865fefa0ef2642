#pragma once

#include <absl/status/status.h>
#include <absl/types/span.h>

#include <string>

#include "proto/sampling.pb.h"
#include "tokenizer_service/tokenizer.h"

namespace lockstep {

// Adds the ids of words that must not come: of each as it begins a text, and as
// it follows a space, which tokenizers tell apart. A word that is but part of a
// token, or that is written in other tokens, can still come.
//
//   LOCKSTEP_RETURN_IF_ERROR(
//       AddBadWords(spec.bad_words, tokenizer, &spec.sampling));
absl::Status AddBadWords(absl::Span<const std::string> words,
                         const Tokenizer& tokenizer,
                         v1::SamplingParams* sampling);

}  // namespace lockstep
