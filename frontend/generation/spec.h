#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "frontend/routing/served_model.h"
#include "frontend/structured_output/constraint.h"
#include "proto/embedding.pb.h"
#include "proto/sampling.pb.h"

// A request as the pipeline sees it, whatever protocol it came by. Plain
// values; an adapter fills them and has them checked by spec_check.h.
namespace lockstep {

struct TextPrompt {
  std::string text;
};

struct ToolCall {
  std::string id;
  std::string name;
  std::string arguments;  // a JSON object
};

struct ChatTurn {
  std::string role;
  std::string content;
  std::string name = {};                  // empty: none
  std::string reasoning = {};             // of an assistant
  std::vector<ToolCall> tool_calls = {};  // of an assistant
  std::string tool_call_id = {};          // of a tool: what it answers
};

struct Tool {
  std::string name;
  // All of it, as OpenAI's API describes tools, and templates show them: JSON.
  std::string json;
  // The JSON schema of its arguments; empty: there are none.
  std::string parameters = {};
  // Whenever it is called, its arguments satisfy the schema.
  bool is_strict = false;
};

struct ChatPrompt {
  std::vector<ChatTurn> messages;
  bool add_generation_prompt = true;
  // The prompt ends within the last message, for the model to go on with.
  bool continue_final_message = false;
  // Further variables of the template, a JSON object that has some; empty:
  // none.
  std::string template_arguments = {};
  // That the model may call; if there are any, the answer is read for calls.
  std::vector<Tool> tools = {};
  // It must call one of them: `required_tool`, if that is not empty.
  bool must_call = false;
  std::string required_tool = {};
};

struct TokenPrompt {
  std::vector<uint32_t> ids;
};

struct PromptSpec {
  std::variant<TextPrompt, ChatPrompt, TokenPrompt> prompt;
  // What the tokenizer adds by itself, such as BOS. A rendered chat has it.
  bool add_special_tokens = true;
  std::string field = {};  // what the client calls it; errors begin with it
};

// Of a longer prompt the last so many tokens count, and its BOS.
using Truncation = std::optional<uint32_t>;

struct DetokenizeSpec {
  std::vector<uint32_t> ids;
  bool skip_special_tokens = true;
};

struct GenerateSpec {
  ServedModel model;
  // As the client knows it.
  std::string request_id;
  // As the worker knows it; unique, whatever ids clients choose.
  std::string worker_request_id;
  PromptSpec prompt;
  Truncation truncation = {};
  // The ranges of both are the worker's to check.
  v1::SamplingParams sampling;
  // Set: nothing is generated, the answer is an embedding of the prompt.
  std::optional<v1::EmbeddingParams> embedding = {};
  int32_t priority = 0;

  std::vector<std::string> bad_words;  // besides those of `sampling`
  std::vector<std::string> stop;
  bool include_stop_str_in_output = false;
  bool skip_special_tokens = true;
  // Of what the model says, where it does not call a tool.
  Constraint constraint = {};
  std::string constraint_field = {};  // what the client calls it
  // False: a choice ends with its first tool call.
  bool parallel_tool_calls = true;
  // False: DeltaEvents have no reasoning; it is left out of the text all the
  // same.
  bool include_reasoning = true;
  // AcceptedEvent carries the prompt's ids and text.
  bool return_prompt = false;

  std::chrono::system_clock::time_point deadline =
      std::chrono::system_clock::time_point::max();
};

// Embeddings of several inputs.
struct EmbedSpec {
  GenerateSpec each;  // of every input, but for the prompt
  std::vector<PromptSpec> inputs;
};

}  // namespace lockstep
