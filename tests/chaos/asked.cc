#include "tests/chaos/asked.h"

#include <absl/strings/str_cat.h>
#include <absl/time/clock.h>
#include <absl/time/time.h>

#include <utility>

#include "common/grpc_status.h"

namespace lockstep::testing {
namespace {

constexpr absl::Duration kLongestAnswer = absl::Seconds(120);

// Its values take hundreds of tokens, so that groups die within them.
constexpr char kSchema[] = R"({
  "type": "array", "minItems": 8, "maxItems": 12,
  "items": {
    "type": "object",
    "properties": {
      "name": {"type": "string", "minLength": 4, "maxLength": 12},
      "size": {"type": "integer", "minimum": 0, "maximum": 9999},
      "tags": {"type": "array", "items": {"enum": ["a", "b"]}, "maxItems": 3}
    },
    "required": ["name", "size", "tags"],
    "additionalProperties": false
  }
})";
constexpr char kParameters[] = R"({
  "type": "object",
  "properties": {
    "places": {
      "type": "array", "minItems": 10, "maxItems": 20,
      "items": {"type": "string", "minLength": 2, "maxLength": 10}
    }
  },
  "required": ["places"],
  "additionalProperties": false
})";

void AddDelta(const v1::TextDelta& delta, SeenChoice* choice) {
  choice->text += delta.text();
  choice->token_ids.insert(choice->token_ids.end(), delta.token_ids().begin(),
                           delta.token_ids().end());
  for (const auto& position : delta.logprobs()) {
    choice->logprobs.push_back(position.SerializeAsString());
  }
  for (const auto& position : delta.prompt_logprobs()) {
    choice->prompt_logprobs.push_back(position.SerializeAsString());
  }
  for (const v1::ToolCallDelta& call : delta.tool_calls()) {
    // Ids are drawn anew for each request.
    absl::StrAppend(&choice->calls[call.index()], call.name(),
                    call.arguments());
  }
}

std::string Describe(const v1::TextFinish& finish) {
  return absl::StrCat(v1::FinishReason_Name(finish.reason()), " ",
                      finish.stop_token_id(), " ", finish.stop_string(), " ",
                      finish.usage().completion_tokens(), " tokens",
                      finish.awaits_tools() ? ", awaits tools" : "");
}

v1::GenerateRequest Base(int max_tokens) {
  v1::GenerateRequest request;
  request.set_text("The capital");
  request.mutable_sampling()->set_temperature(0);
  request.mutable_sampling()->set_max_tokens(max_tokens);
  request.mutable_sampling()->set_ignore_eos(true);
  return request;
}

v1::GenerateRequest OfSchema(int max_tokens) {
  v1::GenerateRequest request = Base(max_tokens);
  request.mutable_sampling()->set_ignore_eos(false);
  request.mutable_structured_output()->set_json_schema(kSchema);
  return request;
}

v1::GenerateRequest WithCall(int max_tokens) {
  v1::GenerateRequest request = Base(max_tokens);
  request.mutable_sampling()->set_ignore_eos(false);
  v1::ChatPrompt* const chat = request.mutable_chat();
  chat->add_messages()->set_role("user");
  chat->mutable_messages(0)->set_content("Where to?");
  v1::Tool* const tool = chat->add_tools();
  tool->set_name("travel");
  tool->set_parameters(kParameters);
  request.set_tool_choice(v1::REQUIRED);
  return request;
}

// What a grammar holds them to, with what else there is.
std::vector<v1::GenerateRequest> ConstrainedRequests(int max_tokens) {
  std::vector<v1::GenerateRequest> requests;
  requests.push_back(OfSchema(max_tokens));
  requests.back().mutable_sampling()->set_logprobs(2);

  requests.push_back(OfSchema(max_tokens));
  v1::SamplingParams* sampling = requests.back().mutable_sampling();
  sampling->set_n(2);
  sampling->set_temperature(1);
  sampling->set_seed(21);
  requests.back().add_stop("7,");

  requests.push_back(OfSchema(max_tokens));
  requests.back().mutable_structured_output()->set_regex(
      "([a-z]{2,9}[0-9]-){30,60}");
  sampling = requests.back().mutable_sampling();
  sampling->set_temperature(0.9f);
  sampling->set_seed(22);
  sampling->set_logprobs(1);
  sampling->set_repetition_penalty(1.1f);

  requests.push_back(WithCall(max_tokens));
  sampling = requests.back().mutable_sampling();
  sampling->set_temperature(1);
  sampling->set_seed(23);
  sampling->set_logprobs(1);
  return requests;
}

}  // namespace

absl::StatusOr<SeenAnswer> Ask(v1::Inference::Stub* stub,
                               const v1::GenerateRequest& request) {
  grpc::ClientContext context;
  context.set_deadline(absl::ToChronoTime(absl::Now() + kLongestAnswer));
  const auto stream = stub->Generate(&context, request);
  SeenAnswer answer;
  int accepted = 0, summaries = 0;
  v1::GenerateResponse event;
  while (stream->Read(&event)) {
    accepted += event.has_accepted();
    if (accepted != 1 || summaries != 0) {
      return absl::InternalError("an event is out of order.");
    }
    summaries += event.has_summary();
    if (event.has_delta()) {
      AddDelta(event.delta(), &answer[event.delta().index()]);
    } else if (event.has_finish()) {
      absl::StrAppend(&answer[event.finish().index()].end,
                      Describe(event.finish()));
    }
  }
  const absl::Status status = FromGrpc(stream->Finish());
  if (!status.ok()) return status;
  if (summaries != 1) return absl::InternalError("there is no summary.");
  return answer;
}

std::string Difference(const SeenAnswer& expected, const SeenAnswer& actual) {
  if (expected.size() != actual.size()) {
    return absl::StrCat(actual.size(), " choices instead of ", expected.size());
  }
  for (const auto& [index, choice] : expected) {
    const auto found = actual.find(index);
    if (found == actual.end()) return absl::StrCat("no choice ", index);
    const SeenChoice& other = found->second;
    if (choice == other) continue;
    size_t at = 0;
    while (at < choice.token_ids.size() && at < other.token_ids.size() &&
           choice.token_ids[at] == other.token_ids[at]) {
      ++at;
    }
    return absl::StrCat(
        "choice ", index, ": ", at, " equal ids of ", choice.token_ids.size(),
        " and ", other.token_ids.size(), ", ends \"", choice.end, "\" and \"",
        other.end, "\", texts of ", choice.text.size(), " and ",
        other.text.size(), " bytes");
  }
  return "";
}

std::vector<v1::GenerateRequest> RequestsOfAllKinds(int max_tokens,
                                                    const std::string& stop) {
  std::vector<v1::GenerateRequest> requests(4, Base(max_tokens));
  for (uint64_t seed = 1; seed < 4; ++seed) {
    requests[seed].mutable_sampling()->set_temperature(1.2);
    requests[seed].mutable_sampling()->set_seed(seed);
  }

  v1::SamplingParams* sampling =
      requests.emplace_back(Base(max_tokens)).mutable_sampling();
  sampling->set_n(3);
  sampling->set_temperature(1);
  sampling->set_top_p(0.95f);
  sampling->set_seed(11);
  sampling->set_repetition_penalty(1.1f);
  sampling->set_frequency_penalty(0.2f);
  sampling->set_presence_penalty(-0.1f);
  (*sampling->mutable_logit_bias())[40] = 2;

  sampling = requests.emplace_back(Base(max_tokens)).mutable_sampling();
  sampling->set_n(2);
  sampling->set_temperature(0.8f);
  sampling->set_seed(12);
  sampling->set_logprobs(3);
  sampling->set_prompt_logprobs(1);

  requests.emplace_back(Base(10 * max_tokens)).add_stop(stop);
  requests.back().set_include_stop_str_in_output(true);

  for (v1::GenerateRequest& request : ConstrainedRequests(max_tokens)) {
    requests.push_back(std::move(request));
  }
  return requests;
}

}  // namespace lockstep::testing
