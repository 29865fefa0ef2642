#pragma once

#include <absl/status/status.h>

#include "frontend/openai/field_reader.h"
#include "frontend/openai/request.h"

namespace lockstep::openai {

// What chat and completion requests have in common: all but the prompt, the
// limit on tokens and the log-probabilities. `spec` and `style` are filled in
// as far as that. Errors are in the reader, or returned.
absl::Status ReadCommonFields(const RequestContext& context,
                              FieldReader* reader, GenerateSpec* spec,
                              AnswerStyle* style);

// Of a longer prompt so many of its tokens count, once it is known how many the
// answer may have.
absl::Status ReadTruncation(const RequestContext& context, FieldReader* reader,
                            GenerateSpec* spec);

// Of these what has nothing to do with tokens: the model, the request's id and
// its priority.
absl::Status ReadCall(const RequestContext& context, FieldReader* reader,
                      GenerateSpec* spec, AnswerStyle* style);

// The model, if it is named, is the one served; `style` keeps its name.
absl::Status ReadModel(const RequestContext& context, FieldReader* reader,
                       AnswerStyle* style);

}  // namespace lockstep::openai
