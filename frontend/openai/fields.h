#pragma once

#include <absl/status/status.h>
#include <absl/types/span.h>

#include <nlohmann/json.hpp>

#include "frontend/openai/unknown_fields.h"

namespace lockstep::openai {

// Which requests a field belongs to; bits.
enum Endpoint : unsigned {
  kChat = 1,
  kCompletions = 2,
  kTokenize = 4,
  kDetokenize = 8,
  kEmbeddings = 16,
  kGenerate = kChat | kCompletions,
};

enum class Treatment {
  kHonoured,
  kWithoutEffect,  // asks for nothing that an answer could show
  kRefused,
};

// One field of OpenAI's schema, or of vLLM's and SGLang's extensions of it.
struct Field {
  const char* name;
  unsigned endpoints;
  Treatment treatment;
  const char* note;          // what it does, or why it does nothing
  const char* neutral = "";  // JSON: a value that asks for nothing, so is taken
};

// The table: every field there is. docs/openai.md shows it, fields_test.cc
// holds each row to what it says.
absl::Span<const Field> Fields();

// Null where this endpoint has no such field.
const Field* FindField(absl::string_view name, unsigned endpoints);

// Refuses by name what asks for something this server does not do; null and
// neutral values ask for nothing. A field that no table has is counted.
absl::Status RefuseFields(const nlohmann::json& request, Endpoint endpoint,
                          UnknownFields* unknown);

}  // namespace lockstep::openai
