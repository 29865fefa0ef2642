#include "frontend/grpc/request_parser.h"

#include <absl/strings/str_cat.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <regex>
#include <string>
#include <vector>

#include "common/request_id.h"
#include "frontend/generation/error_detail.h"
#include "frontend/generation/spec_check.h"
#include "tokenizer_service/tokenizer.h"

namespace lockstep {
namespace {

const ServedModel kModel = {"tiny", /*max_context_tokens=*/16,
                            /*vocabulary_size=*/300};

template <typename Request>
Request FromText(const std::string& text) {
  Request request;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &request))
      << text;
  return request;
}

absl::StatusOr<GenerateSpec> Parse(const std::string& text) {
  return ParseGenerateRequest(FromText<v1::GenerateRequest>(text), kModel);
}

TEST(RequestParser, DefaultsOfAText) {
  const auto spec = Parse("text: 'hi'");
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_EQ(std::get<TextPrompt>(spec->prompt.prompt).text, "hi");
  EXPECT_TRUE(spec->prompt.add_special_tokens);
  EXPECT_TRUE(spec->skip_special_tokens);
  EXPECT_FALSE(spec->include_stop_str_in_output);
  EXPECT_EQ(spec->priority, 0);
  EXPECT_EQ(spec->model.name, "tiny");
}

TEST(RequestParser, AChatIsRenderedAndGetsNoSpecialTokensOnTop) {
  const auto spec = Parse(
      "chat { messages { role: 'system' content: 'be brief' } "
      "messages { role: 'user' } add_generation_prompt: false }");
  ASSERT_TRUE(spec.ok()) << spec.status();
  const auto& chat = std::get<ChatPrompt>(spec->prompt.prompt);
  EXPECT_EQ(chat.messages.size(), 2);
  EXPECT_EQ(chat.messages[0].content, "be brief");
  EXPECT_FALSE(chat.add_generation_prompt);
  EXPECT_FALSE(spec->prompt.add_special_tokens);
}

TEST(RequestParser, TakesOverEveryField) {
  const auto spec = Parse(
      "model: 'tiny' request_id: 'r.1' token_ids { ids: 3 ids: 299 } "
      "sampling { temperature: 0 n: 2 } stop: 'a' stop: 'b' priority: -3 "
      "include_stop_str_in_output: true skip_special_tokens: false");
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_EQ(std::get<TokenPrompt>(spec->prompt.prompt).ids,
            (std::vector<uint32_t>{3, 299}));
  EXPECT_EQ(spec->request_id, "r.1");
  EXPECT_EQ(spec->sampling.n(), 2);
  EXPECT_EQ(spec->stop, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(spec->priority, -3);
  EXPECT_TRUE(spec->include_stop_str_in_output);
  EXPECT_FALSE(spec->skip_special_tokens);
}

TEST(RequestParser, AChatHasToolsAndWhatCameOfThem) {
  const auto spec = Parse(
      R"(chat { messages { role: 'assistant' name: 'ann' reasoning: 'hm'
           tool_calls { id: 'c1' name: 'f' arguments: '{"a": 1}' } }
         messages { role: 'tool' content: '7' tool_call_id: 'c1' }
         tools { name: 'f' description: 'd' parameters: '{"b": 1, "a": 2}' }
         tools { name: 'g' }
         template_arguments: '{"z": 1}' documents: '["d"]'
         continue_final_message: true }
         tool_choice: AUTO parallel_tool_calls: false
         include_reasoning: false)");
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_FALSE(spec->parallel_tool_calls);
  EXPECT_FALSE(spec->include_reasoning);
  const auto& chat = std::get<ChatPrompt>(spec->prompt.prompt);
  EXPECT_EQ(chat.messages[0].name, "ann");
  EXPECT_EQ(chat.messages[0].reasoning, "hm");
  ASSERT_EQ(chat.messages[0].tool_calls.size(), 1);
  EXPECT_EQ(chat.messages[0].tool_calls[0].id, "c1");
  EXPECT_EQ(chat.messages[0].tool_calls[0].name, "f");
  EXPECT_EQ(chat.messages[0].tool_calls[0].arguments, R"({"a": 1})");
  EXPECT_EQ(chat.messages[1].tool_call_id, "c1");
  ASSERT_EQ(chat.tools.size(), 2);
  EXPECT_EQ(chat.tools[0].name, "f");
  EXPECT_EQ(chat.tools[0].json,
            R"({"type":"function","function":{"name":"f","description":"d",)"
            R"("parameters":{"b":1,"a":2}}})");
  EXPECT_EQ(chat.tools[1].json,
            R"({"type":"function","function":{"name":"g"}})");
  EXPECT_EQ(chat.template_arguments, R"({"z":1,"documents":["d"]})");
  EXPECT_TRUE(chat.continue_final_message);
  EXPECT_FALSE(chat.add_generation_prompt);
}

// A time that grows with the square of the keys would be hours.
TEST(RequestParser, ObjectsMayHaveManyKeys) {
  std::string many;
  for (int i = 0; i < 300'000; ++i) {
    absl::StrAppend(&many, i == 0 ? "{\"" : ",\"", i, "\":0");
  }
  many += "}";
  v1::GenerateRequest request;
  auto* chat = request.mutable_chat();
  auto* message = chat->add_messages();
  message->set_role("user");
  message->set_content("hi");
  auto* tool = chat->add_tools();
  tool->set_name("f");
  tool->set_parameters(many);
  chat->set_template_arguments(many);
  chat->set_documents("[" + many + "]");
  request.mutable_structured_output()->set_json_schema(many);
  ServedModel model = kModel;
  model.max_context_tokens = 100'000;
  const auto spec = ParseGenerateRequest(request, model);
  ASSERT_TRUE(spec.ok()) << spec.status();
  const auto& prompt = std::get<ChatPrompt>(spec->prompt.prompt);
  EXPECT_EQ(prompt.tools[0].json.size(),
            many.size() + absl::string_view(
                              R"({"type":"function","function":{"name":"f",)"
                              R"("parameters":}})")
                              .size());
  EXPECT_EQ(prompt.template_arguments.size(),
            2 * many.size() + absl::string_view(R"(,"documents":[])").size());
}

TEST(RequestParser, AModelThatMayNotCallIsNotToldOfTools) {
  const auto spec = Parse(
      "chat { messages { role: 'user' content: 'hi' } tools { name: 'f' } } "
      "tool_choice: NONE");
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_TRUE(std::get<ChatPrompt>(spec->prompt.prompt).tools.empty());
}

TEST(RequestParser, WhatIsWrongWithAChatIsNamed) {
  const struct {
    std::string fields, error;
  } kCases[] = {
      {"tools { name: 'a b' }",
       "chat.tools[0] is named \"a b\"; a name is 1 to 64 characters of "
       "[A-Za-z0-9_.-]."},
      {"tools { name: 'f' parameters: '[]' }",
       "chat.tools.parameters is no JSON object."},
      {"template_arguments: '7'", "chat.template_arguments is no JSON object."},
      {"template_arguments: '{\"tools\": []}'",
       "chat.template_arguments has tools, which would replace what the chat "
       "says of it; leave it out."},
      {"documents: '{}'", "chat.documents is no JSON list."},
      {"continue_final_message: true add_generation_prompt: true",
       "chat.add_generation_prompt is true; it must be false where "
       "chat.continue_final_message is true."},
  };
  for (const auto& c : kCases) {
    EXPECT_EQ(Parse("chat { messages { role: 'user' content: 'hi' } " +
                    c.fields + " }")
                  .status(),
              absl::InvalidArgumentError(c.error));
  }
  EXPECT_EQ(Parse("text: 'hi' tool_choice: AUTO").status(),
            absl::InvalidArgumentError(
                "tool_choice is AUTO; it must be left out where there is no "
                "chat with tools."));
  EXPECT_EQ(Parse("text: 'hi' tool_choice: REQUIRED").status(),
            absl::InvalidArgumentError(
                "tool_choice is REQUIRED; it must be left out where there is "
                "no chat with tools."));
}

TEST(RequestParser, ReadsWhatTheAnswerMustBe) {
  const std::string text = "text: 'hi' structured_output ";
  const auto schema = Parse(text + "{ json_schema: '{\"b\": 1, \"a\": 2}' }");
  ASSERT_TRUE(schema.ok()) << schema.status();
  EXPECT_EQ(std::get<JsonSchema>(schema->constraint).text,
            "{\"b\": 1, \"a\": 2}");
  EXPECT_EQ(schema->constraint_field, "structured_output");
  const auto object = Parse(text + "{ json_object: true }");
  EXPECT_EQ(std::get<JsonSchema>(object->constraint).text, kAnyObject);
  const auto regex = Parse(text + "{ regex: 'a+' }");
  EXPECT_EQ(std::get<Regex>(regex->constraint).text, "a+");
  const auto choice = Parse(text + "{ choice { texts: 'a' texts: 'b' } }");
  EXPECT_EQ(std::get<OneOf>(choice->constraint).texts.size(), 2);
  const auto grammar = Parse(text + "{ grammar: 'start: \"a\"' }");
  EXPECT_EQ(std::get<LarkGrammar>(grammar->constraint).text, "start: \"a\"");
}

TEST(RequestParser, WhatAnAnswerCanNotBeIsNamed) {
  const std::map<std::string, std::string> kCases = {
      {"structured_output {}",
       "structured_output is empty; it must have one of json_schema, "
       "json_object, regex, choice and grammar."},
      {"structured_output { json_object: false }",
       "structured_output.json_object is false; it must be true, or left "
       "out."},
      {"structured_output { json_schema: '7' }",
       "structured_output.json_schema is no JSON schema; it must be an "
       "object."},
      {"structured_output { regex: '' }", "structured_output.regex is empty."},
      {"structured_output { choice {} }",
       "structured_output.choice.texts holds 0 texts; it must hold 1 to 1024."},
      {"structured_output { choice { texts: 'a' texts: 'a' } }",
       "structured_output.choice.texts[1] is there twice."},
      {"structured_output { grammar: 'a ::= \"b\"' }",
       "structured_output.grammar is no GBNF: it has no rule root"},
      {"required_tool: 'f'",
       "required_tool is given; it must be left out unless tool_choice is "
       "REQUIRED."},
  };
  for (const auto& [fields, error] : kCases) {
    EXPECT_EQ(Parse("text: 'hi' " + fields).status(),
              absl::InvalidArgumentError(error));
  }
}

TEST(RequestParser, ReadsWhichToolMustBeCalled) {
  const std::string chat =
      "chat { messages { role: 'user' content: 'hi' } tools { name: 'f' "
      "strict: true parameters: '{}' } tools { name: 'g' } } ";
  const auto prompt = [](const absl::StatusOr<GenerateSpec>& spec) {
    EXPECT_TRUE(spec.ok()) << spec.status();
    return std::get<ChatPrompt>(spec->prompt.prompt);
  };
  EXPECT_FALSE(prompt(Parse(chat)).must_call);
  EXPECT_TRUE(prompt(Parse(chat)).tools[0].is_strict);
  EXPECT_EQ(prompt(Parse(chat)).tools[0].parameters, "{}");
  EXPECT_FALSE(prompt(Parse(chat)).tools[1].is_strict);
  EXPECT_TRUE(prompt(Parse(chat + "tool_choice: REQUIRED")).must_call);
  EXPECT_EQ(prompt(Parse(chat + "tool_choice: REQUIRED required_tool: 'g'"))
                .required_tool,
            "g");
  EXPECT_EQ(Parse(chat + "tool_choice: REQUIRED required_tool: 'h'").status(),
            absl::InvalidArgumentError("required_tool is \"h\"; it must be "
                                       "the name of one of the tools."));
}

TEST(RequestParser, TheWorkersIdIsUniqueAndFitsItsLimit) {
  const std::string longest(kMaxRequestIdBytes, 'x');
  const auto one = Parse("text: 'hi' request_id: '" + longest + "'");
  const auto two = Parse("text: 'hi' request_id: '" + longest + "'");
  ASSERT_TRUE(one.ok() && two.ok());
  EXPECT_EQ(one->request_id, longest);
  EXPECT_EQ(one->worker_request_id.size(), kMaxRequestIdBytes);
  EXPECT_NE(one->worker_request_id, two->worker_request_id);
  const auto made = Parse("text: 'hi'");
  ASSERT_TRUE(made.ok());
  EXPECT_EQ(made->request_id, made->worker_request_id);
  EXPECT_TRUE(
      std::regex_match(made->request_id, std::regex("gen-[0-9a-f]{16}")));
}

TEST(RequestParser, RefusesNamingFieldValueAndLimit) {
  const auto text_of = [](size_t bytes) {
    return "text: '" + std::string(bytes, 'a') + "'";
  };
  std::string sixteen;
  for (int i = 0; i < 16; ++i) sixteen += "ids: 1 ";
  std::string seventeen = "text: 'hi'";
  for (int i = 0; i < 17; ++i) seventeen += " stop: 'x'";
  const struct {
    std::string request;
    std::string error;
  } kCases[] = {
      {"", "there is no prompt; set one of text, chat and token_ids."},
      {"text: ''", "text is empty; a prompt needs at least one character."},
      {text_of(2049),
       "text is 2049 bytes long; at most 2048 are allowed, 128 for each of the "
       "16 tokens of the context."},
      {"chat {}", "chat.messages is empty; a chat needs at least one message."},
      {"chat { messages { role: 'user' } messages { content: 'hi' } }",
       "chat.messages[1].role is empty; templates know system, user, "
       "assistant."},
      {"chat { messages { role: 'user' content: '" + std::string(2048, 'a') +
           "' } }",
       "chat.messages is 2052 bytes long; at most 2048 are allowed, 128 for "
       "each of the 16 tokens of the context."},
      {"token_ids {}",
       "token_ids.ids is empty; a prompt needs at least one id."},
      {"token_ids { ids: 299 ids: 300 }",
       "token_ids.ids[1] is 300; it must be below the vocabulary size 300."},
      {"token_ids { " + sixteen + "}",
       "token_ids.ids holds 16 ids; at most 15 fit, as the context of tiny is "
       "16 tokens and the answer needs one of them."},
      {"text: 'hi' request_id: ''",
       "request_id is empty; leave it out to have one made."},
      {"text: 'hi' request_id: '" + std::string(129, 'x') + "'",
       "request_id is 129 bytes long; at most 128 are allowed."},
      {"text: 'hi' request_id: 'a b'",
       "request_id has a character outside [A-Za-z0-9._-] at byte 1."},
      {seventeen, "stop holds 17 strings; at most 16 are allowed."},
      {"text: 'hi' stop: 'x' stop: ''",
       "stop[1] is 0 bytes long; it must be 1 to 1024."},
      {"text: 'hi' stop: '" + std::string(1025, 'x') + "'",
       "stop[0] is 1025 bytes long; it must be 1 to 1024."},
  };
  for (const auto& c : kCases) {
    const absl::Status status = Parse(c.request).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(status.message(), c.error);
  }
}

TEST(RequestParser, TenMegabytesAreTooMuchForAnyModel) {
  v1::GenerateRequest request;
  request.set_text(std::string(10'000'000, 'a'));
  const absl::Status status =
      ParseGenerateRequest(request, {"big", 1'000'000, 300}).status();
  EXPECT_EQ(status.message(),
            "text is 10000000 bytes long; at most 8388608 are allowed.");
  EXPECT_EQ(ReasonOf(status), kContextLengthExceeded);
}

TEST(RequestParser, AnUnknownModelIsNotFoundAndNamesTheOneThereIs) {
  const auto error = WithReason(
      absl::NotFoundError("the model \"huge\" is not served here; the model "
                          "served is \"tiny\"."),
      kModelNotFound);
  EXPECT_EQ(Parse("text: 'hi' model: 'huge'").status(), error);
  EXPECT_EQ(
      ParseTokenizeRequest(
          FromText<v1::TokenizeRequest>("text: 'hi' model: 'huge'"), kModel)
          .status(),
      error);
  EXPECT_EQ(ParseDetokenizeRequest(
                FromText<v1::DetokenizeRequest>("model: 'huge'"), kModel)
                .status(),
            error);
}

TEST(RequestParser, RefusesAFieldItDoesNotKnow) {
  v1::GenerateRequest request = FromText<v1::GenerateRequest>("text: 'hi'");
  auto* sampling = request.mutable_sampling();
  sampling->GetReflection()->MutableUnknownFields(sampling)->AddVarint(17, 1);
  EXPECT_EQ(ParseGenerateRequest(request, kModel).status(),
            absl::InvalidArgumentError(
                "field number 17 of sampling is not known to this server."));
}

TEST(RequestParser, Tokenize) {
  const auto parse = [](const std::string& text) {
    return ParseTokenizeRequest(FromText<v1::TokenizeRequest>(text), kModel);
  };
  EXPECT_TRUE(parse("text: 'hi'")->add_special_tokens);
  EXPECT_FALSE(
      parse("text: 'hi' add_special_tokens: false")->add_special_tokens);
  EXPECT_FALSE(parse("chat { messages { role: 'user' } }")->add_special_tokens);
  EXPECT_EQ(parse("").status(),
            absl::InvalidArgumentError(
                "there is nothing to tokenize; set text or chat."));
}

TEST(RequestParser, Detokenize) {
  v1::DetokenizeRequest request;
  request.add_token_ids(299);
  const auto spec = ParseDetokenizeRequest(request, kModel);
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_EQ(spec->ids, std::vector<uint32_t>{299});
  EXPECT_TRUE(spec->skip_special_tokens);
  request.add_token_ids(300);
  EXPECT_EQ(ParseDetokenizeRequest(request, kModel).status(),
            absl::InvalidArgumentError("token_ids[1] is 300; it must be below "
                                       "the vocabulary size 300."));
  request.mutable_token_ids()->Resize(kMaxDecodedIds + 1, 0);
  EXPECT_EQ(ParseDetokenizeRequest(request, kModel).status(),
            absl::InvalidArgumentError("token_ids holds 1048577 ids; at most "
                                       "1048576 are allowed."));
}

TEST(RequestParser, CountsMessagesBeforeItLooksAtThem) {
  v1::GenerateRequest generate;
  v1::TokenizeRequest tokenize;
  for (int i = 0; i <= kMaxChatMessages; ++i) {
    v1::ChatMessage* message = generate.mutable_chat()->add_messages();
    message->GetReflection()->MutableUnknownFields(message)->AddVarint(3, 1);
  }
  *tokenize.mutable_chat() = generate.chat();
  const auto error = absl::InvalidArgumentError(
      "chat.messages holds 16385 messages; at most 16384 are allowed.");
  EXPECT_EQ(ParseGenerateRequest(generate, kModel).status(), error);
  EXPECT_EQ(ParseTokenizeRequest(tokenize, kModel).status(), error);
}

}  // namespace
}  // namespace lockstep
