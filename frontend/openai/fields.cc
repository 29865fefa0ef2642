#include "frontend/openai/fields.h"

#include <absl/strings/str_cat.h>

#include "common/status_macros.h"
#include "frontend/generation/error_detail.h"

namespace lockstep::openai {
namespace {

using nlohmann::json;

constexpr auto kHonoured = Treatment::kHonoured;
constexpr auto kWithoutEffect = Treatment::kWithoutEffect;
constexpr auto kRefused = Treatment::kRefused;
constexpr unsigned kComputed = kGenerate | kEmbeddings;
constexpr unsigned kAll = kGenerate | kTokenize | kDetokenize | kEmbeddings;

constexpr char kTextOnly[] = "the models served here read and write text";

constexpr Field kFields[] = {
    // The prompt.
    {"model", kAll, kHonoured, "the name /v1/models lists; default: that one"},
    {"messages", kChat | kTokenize, kHonoured,
     "role, content (a string or parts of text), name, tool_calls, "
     "tool_call_id, reasoning or reasoning_content"},
    {"prompt", kCompletions | kTokenize, kHonoured,
     "a string; for completions also strings, token ids, lists of them"},
    {"tokens", kDetokenize, kHonoured, "token ids"},
    {"input", kEmbeddings, kHonoured,
     "a string, token ids, or a list of up to 2048 of either"},
    {"add_special_tokens", kGenerate | kTokenize | kEmbeddings, kHonoured,
     "such as BOS; default true for a prompt, false for messages"},
    {"add_generation_prompt", kChat | kTokenize, kHonoured, "default true"},
    {"continue_final_message", kChat | kTokenize, kHonoured,
     "the answer goes on with the last message"},
    {"chat_template_kwargs", kChat | kTokenize, kHonoured,
     "variables of the chat template"},
    {"documents", kChat | kTokenize, kHonoured,
     "a variable of the chat template"},
    {"return_token_strs", kTokenize, kHonoured, "the text of each token"},
    {"echo", kCompletions, kHonoured,
     "the prompt before the answer; with max_tokens 0 it alone"},
    {"echo", kChat, kRefused, "a chat is not repeated", "false"},
    {"suffix", kCompletions, kRefused, "no text is filled in before another",
     R"("")"},
    {"chat_template", kChat | kTokenize, kRefused,
     "the model's own template is used"},
    {"truncate_prompt_tokens", kGenerate, kHonoured,
     "of a longer prompt the last so many tokens; -1: as many as fit with "
     "max_tokens"},
    {"truncate_prompt_tokens", kEmbeddings, kHonoured,
     "of a longer input the last so many tokens; -1: as many as fit"},
    {"truncation_side", kComputed, kRefused, "of what is cut the end stays",
     R"("left")"},
    {"messages", kEmbeddings, kRefused, "texts are embedded, not chats"},
    {"prompt_embeds", kCompletions, kRefused, kTextOnly},
    {"mm_processor_kwargs", kChat, kRefused, kTextOnly},
    {"modalities", kChat, kRefused, kTextOnly, R"(["text"])"},
    {"audio", kChat, kRefused, kTextOnly},

    // How tokens are chosen.
    {"temperature", kGenerate, kHonoured, "0 to 100, 0 is greedy"},
    {"top_p", kGenerate, kHonoured, "above 0, at most 1"},
    {"top_k", kGenerate, kHonoured, "0 or -1: all"},
    {"min_p", kGenerate, kHonoured, "0 to 1"},
    {"frequency_penalty", kGenerate, kHonoured, "-2 to 2"},
    {"presence_penalty", kGenerate, kHonoured, "-2 to 2"},
    {"repetition_penalty", kGenerate, kHonoured, "above 0, at most 100"},
    {"logit_bias", kGenerate, kHonoured, "by token id, -100 to 100"},
    {"seed", kGenerate, kHonoured, "the same seed, the same answer"},
    {"n", kGenerate, kHonoured,
     "choices a prompt, 1 to 128; of all prompts up to 4096"},
    {"best_of", kCompletions, kRefused, "every choice is returned", "1"},
    {"use_beam_search", kGenerate, kRefused, "there is no beam search",
     "false"},
    {"length_penalty", kGenerate, kRefused, "there is no beam search", "1.0"},
    {"allowed_token_ids", kGenerate, kHonoured,
     "no others are chosen; 1 to 4096"},
    {"bad_words", kGenerate, kHonoured,
     "up to 128 that no answer has, as they are in tokens"},
    {"repetition_detection", kGenerate, kRefused, "repetition is not detected"},

    // What is made of an input's hidden states.
    {"encoding_format", kEmbeddings, kHonoured,
     "float, or base64 of little-endian fp32; default float"},
    {"dimensions", kEmbeddings, kHonoured,
     "the first so many values, of a model that was made for it"},
    {"pooling", kEmbeddings, kHonoured,
     "last_token or mean; default: the model's"},
    {"normalize", kEmbeddings, kHonoured,
     "to the length 1; default: the model's"},
    {"embed_dtype", kEmbeddings, kRefused, "values are fp32", R"("float32")"},
    {"endianness", kEmbeddings, kRefused, "base64 is of little-endian values",
     R"("little")"},

    // Where an answer ends.
    {"max_tokens", kGenerate, kHonoured,
     "default: the rest of the context; for completions 16"},
    {"max_completion_tokens", kChat, kHonoured, "wins over max_tokens"},
    {"min_tokens", kGenerate, kHonoured, "no end before so many"},
    {"stop", kGenerate, kHonoured, "a string, or up to 16"},
    {"stop_token_ids", kGenerate, kHonoured, "up to 64"},
    {"ignore_eos", kGenerate, kHonoured, "the model's own end is none"},
    {"include_stop_str_in_output", kGenerate, kHonoured, "default false"},
    {"no_stop_trim", kGenerate, kRefused,
     "it is called include_stop_str_in_output", "false"},

    // What the answer holds.
    {"stream", kGenerate, kHonoured, "server-sent events"},
    {"stream_options", kGenerate, kHonoured,
     "include_usage, continuous_usage_stats"},
    {"logprobs", kGenerate, kHonoured,
     "chat: true or false; completions: 0 to 20"},
    {"top_logprobs", kChat, kHonoured, "0 to 20, with logprobs"},
    {"prompt_logprobs", kGenerate, kHonoured, "0 to 20, not with stream"},
    {"return_token_ids", kGenerate, kHonoured, "of the prompt and the answer"},
    {"return_tokens_as_token_ids", kGenerate, kHonoured,
     "log-probabilities name a token token_id:ID"},
    {"skip_special_tokens", kGenerate, kHonoured, "default true"},
    {"spaces_between_special_tokens", kGenerate, kWithoutEffect,
     "the decoders of today's models put none"},
    {"logprob_token_ids", kGenerate, kRefused,
     "log-probabilities are of the most probable ids"},
    {"stream_interval", kGenerate, kRefused, "tokens are sent as they come",
     "1"},

    // How a request is served.
    {"priority", kComputed, kHonoured, "-100 to 100, lower first"},
    {"request_id", kComputed, kHonoured,
     "for logs, where there is no x-request-id"},
    {"rid", kComputed, kRefused, "it is called request_id"},
    {"user", kComputed, kWithoutEffect, "names a user of the client's"},
    {"safety_identifier", kGenerate, kWithoutEffect,
     "names a user of the client's"},
    {"metadata", kGenerate, kWithoutEffect, "goes with stored answers"},
    {"store", kGenerate, kRefused, "no answer is stored", "false"},
    {"service_tier", kGenerate, kWithoutEffect, "there is one tier"},
    {"prompt_cache_key", kGenerate, kWithoutEffect,
     "equal prefixes are found without it"},
    {"prompt_cache_retention", kGenerate, kWithoutEffect,
     "prefixes are kept as long as there is room"},
    {"cache_salt", kComputed, kRefused, "the prefix cache is shared by all"},
    {"kv_transfer_params", kGenerate, kRefused,
     "prefill and decode are done by one group"},
    {"lora_path", kGenerate, kRefused, "there are no adapters"},
    {"vllm_xargs", kGenerate, kRefused, "there are no arguments besides these"},
    {"prediction", kChat, kRefused, "no output is predicted"},
    {"web_search_options", kChat, kRefused, "nothing is searched for"},

    // Tools, structured output, reasoning.
    {"tools", kChat | kTokenize, kHonoured,
     "up to 128 functions that the model may call, strict or not"},
    {"tool_choice", kChat | kTokenize, kHonoured,
     "auto, required, the name of one, or none: the model is not told of "
     "the tools"},
    {"parallel_tool_calls", kChat, kHonoured,
     "false: a choice ends with its first call"},
    {"functions", kChat | kTokenize, kHonoured,
     "tools as they were before: an answer calls one, and has a function_call"},
    {"function_call", kChat | kTokenize, kHonoured,
     "tool_choice as it was before: auto, none, or the name of one"},
    {"response_format", kGenerate, kHonoured,
     "of type text, json_object or json_schema"},
    {"structured_outputs", kGenerate, kHonoured,
     "vLLM's: one of json, regex, choice, grammar and json_object"},
    {"guided_json", kGenerate, kHonoured, "a JSON schema, or its text"},
    {"guided_regex", kGenerate, kHonoured, "of the whole answer"},
    {"guided_choice", kGenerate, kHonoured, "up to 1024 texts"},
    {"guided_grammar", kGenerate, kHonoured, "Lark's or GBNF's syntax"},
    {"guided_json_object", kGenerate, kHonoured, "true: any JSON object"},
    {"json_schema", kGenerate, kHonoured, "SGLang's guided_json"},
    {"regex", kGenerate, kHonoured, "SGLang's guided_regex"},
    {"ebnf", kGenerate, kHonoured, "SGLang's guided_grammar"},
    {"reasoning_effort", kChat | kTokenize, kHonoured,
     "a variable of the chat template"},
    {"include_reasoning", kChat, kHonoured,
     "false: what the model thinks is not shown"},
    {"separate_reasoning", kChat, kRefused,
     "reasoning is never a part of the content", "true"},
    {"thinking_token_budget", kGenerate, kRefused,
     "reasoning is not cut short"},
    {"verbosity", kChat, kRefused, "say it in the prompt", R"("medium")"},
};

bool AsksForNothing(const Field& field, const json& value) {
  if (value.is_null()) return true;
  return *field.neutral != '\0' && value == json::parse(field.neutral);
}

}  // namespace

absl::Span<const Field> Fields() { return kFields; }

const Field* FindField(absl::string_view name, unsigned endpoints) {
  for (const Field& field : kFields) {
    if ((field.endpoints & endpoints) != 0 && name == field.name) return &field;
  }
  return nullptr;
}

absl::Status RefuseFields(const json& request, Endpoint endpoint,
                          UnknownFields* unknown) {
  for (const auto& [name, value] : request.items()) {
    const Field* field = FindField(name, endpoint);
    if (field == nullptr) {
      unknown->Count(name);
    } else if (field->treatment == Treatment::kRefused &&
               !AsksForNothing(*field, value)) {
      return WithField(
          WithReason(absl::InvalidArgumentError(absl::StrCat(
                         name, " is not supported: ", field->note, ".")),
                     kUnsupportedParameter),
          name);
    }
  }
  return absl::OkStatus();
}

}  // namespace lockstep::openai
