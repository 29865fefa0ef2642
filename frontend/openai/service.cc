#include "frontend/openai/service.h"

#include <absl/strings/str_cat.h>
#include <absl/time/clock.h>
#include <google/protobuf/util/json_util.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "common/error_reason.h"
#include "common/program/version.h"
#include "common/status_macros.h"
#include "frontend/access/open_routes.h"
#include "frontend/generation/prompt_encoder.h"
#include "frontend/generation/spec_check.h"
#include "frontend/openai/answer_json.h"
#include "frontend/openai/embeddings_call.h"
#include "frontend/openai/error_response.h"
#include "frontend/openai/generate_call.h"
#include "frontend/openapi/document.h"

namespace lockstep::openai {
namespace {

constexpr char kJson[] = "application/json";

http::Response JsonResponse(const Json& json) {
  return {200, {{"content-type", kJson}}, Dump(json)};
}

// By the names that requests have, which are those of its fields.
Json SamplingJson(const v1::SamplingParams& sampling) {
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  std::string text;
  const auto status =
      google::protobuf::util::MessageToJsonString(sampling, &text, options);
  return status.ok() ? Json::parse(text) : Json::object();
}

Json ModelJson(const ServedModel& model, int64_t created_s) {
  return {{"id", model.name},
          {"object", "model"},
          {"created", created_s},
          {"owned_by", "lockstep"},
          {"root", model.name},
          {"parent", nullptr},
          {"max_model_len", model.max_context_tokens},
          {"default_sampling", SamplingJson(model.default_sampling)},
          {"permission", Json::array()}};
}

void Answer(const std::shared_ptr<http::ResponseWriter>& writer,
            const absl::StatusOr<Json>& json) {
  writer->Send(json.ok() ? JsonResponse(*json) : ErrorResponse(json.status()));
}

// Empty where there is none.
absl::string_view AuthorizationOf(const http::Request& request) {
  const std::string* field = request.Find("authorization");
  if (field == nullptr) return "";
  return *field;
}

}  // namespace

Service::Service(Pipeline* pipeline, const GroupSet* groups,
                 const AccessControl* access,
                 std::function<absl::Status()> readiness,
                 std::function<void()> drain)
    : pipeline_(pipeline),
      groups_(groups),
      access_(access),
      readiness_(std::move(readiness)),
      drain_(std::move(drain)),
      created_s_(absl::ToUnixSeconds(absl::Now())) {}

std::vector<http::Route> Service::Routes() {
  using http::Request;
  const http::Handler health = [this](Request, Writer writer) {
    Health(std::move(writer));
  };
  const http::Handler live = [](Request, Writer writer) {
    writer->Send({200, {}, ""});
  };
  return {
      {"GET", "/v1/models",
       [this](Request, Writer writer) { ListModels(std::move(writer)); }},
      {"GET", "/v1/models/*",
       [this](Request request, Writer writer) {
         GetModel(request, std::move(writer));
       }},
      {"POST", "/v1/chat/completions",
       [this](Request request, Writer writer) {
         Generate(std::move(request), std::move(writer), ParseChatRequest);
       },
       kJson},
      {"POST", "/v1/completions",
       [this](Request request, Writer writer) {
         Generate(std::move(request), std::move(writer),
                  ParseCompletionRequest);
       },
       kJson},
      {"POST", "/v1/embeddings",
       [this](Request request, Writer writer) {
         Embed(std::move(request), std::move(writer));
       },
       kJson},
      {"POST", "/tokenize",
       [this](Request request, Writer writer) {
         Tokenize(std::move(request), std::move(writer));
       },
       kJson},
      {"POST", "/detokenize",
       [this](Request request, Writer writer) {
         Detokenize(std::move(request), std::move(writer));
       },
       kJson},
      {"POST", "/drain",
       [this](Request request, Writer writer) {
         Drain(request, std::move(writer));
       }},
      {"GET", "/version",
       [](Request, Writer writer) {
         writer->Send(JsonResponse({{"version", kVersion}}));
       }},
      {"GET", "/openapi.json",
       [](Request, Writer writer) {
         writer->Send(
             {200, {{"content-type", kJson}}, std::string(OpenApiDocument())});
       }},
      {"GET", "/health", health},
      {"GET", "/ready", health},
      {"GET", "/readiness", health},
      {"GET", "/live", live},
      {"GET", "/liveness", live},
  };
}

http::Refusal Service::Guard(const http::Request& request) const {
  if (IsOpenRoute(request.path)) return {};
  const absl::Status status = access_->Check(AuthorizationOf(request));
  if (status.ok()) return {};
  return {401, std::string(status.message())};
}

absl::StatusOr<RequestContext> Service::MakeContext(
    const http::Request& request) {
  RequestContext context;
  LOCKSTEP_ASSIGN_OR_RETURN(context.model, groups_->Model());
  context.request_id = request.request_id;
  context.has_request_id = request.Find("x-request-id") != nullptr;
  context.now_s = absl::ToUnixSeconds(absl::Now());
  context.unknown_fields = &unknown_fields_;
  return context;
}

void Service::Generate(http::Request request, Writer writer,
                       ParseGenerate parse) {
  auto grant = access_->Enter(AuthorizationOf(request));
  if (!grant.ok()) return Answer(writer, grant.status());
  GenerateCall::Start(
      pipeline_, std::move(request), *std::move(grant),
      [this,
       parse](const http::Request& received) -> absl::StatusOr<ParsedRequest> {
        LOCKSTEP_ASSIGN_OR_RETURN(const RequestContext context,
                                  MakeContext(received));
        return parse(received.body, context);
      },
      std::move(writer));
}

void Service::Embed(http::Request request, Writer writer) {
  auto grant = access_->Enter(AuthorizationOf(request));
  if (!grant.ok()) return Answer(writer, grant.status());
  StartEmbeddingsCall(
      pipeline_, std::move(request), *std::move(grant),
      [this](
          const http::Request& received) -> absl::StatusOr<EmbeddingsRequest> {
        LOCKSTEP_ASSIGN_OR_RETURN(const RequestContext context,
                                  MakeContext(received));
        return ParseEmbeddingsRequest(received.body, context);
      },
      std::move(writer));
}

void Service::Tokenize(http::Request request, Writer writer) {
  struct Call {
    http::Request request;
    bool return_token_strs = false;
    uint32_t max_model_len = 0;
  };
  const auto grant = access_->Enter(AuthorizationOf(request));
  if (!grant.ok()) return Answer(writer, grant.status());
  auto call = std::make_shared<Call>();
  call->request = std::move(request);
  const size_t bytes = call->request.body.size();
  pipeline_->Tokenize(
      bytes,
      [this, call]() -> absl::StatusOr<PromptSpec> {
        LOCKSTEP_ASSIGN_OR_RETURN(const RequestContext context,
                                  MakeContext(call->request));
        LOCKSTEP_ASSIGN_OR_RETURN(
            TokenizeRequest parsed,
            ParseTokenizeRequest(call->request.body, context));
        call->return_token_strs = parsed.return_token_strs;
        call->max_model_len = context.model.max_context_tokens;
        return std::move(parsed.prompt);
      },
      AfterRelease(*grant, [this, call,
                            writer](absl::StatusOr<EncodedPrompt> encoded) {
        if (!encoded.ok()) return Answer(writer, encoded.status());
        Answer(
            writer,
            Json{{"count", encoded->token_ids.size()},
                 {"max_model_len", call->max_model_len},
                 {"tokens", encoded->token_ids},
                 {"token_strs",
                  call->return_token_strs
                      ? Json(TokenStrings(encoded->token_ids,
                                          pipeline_->tokenizer().vocabulary()))
                      : Json()}});
      }));
}

void Service::Detokenize(http::Request request, Writer writer) {
  const auto grant = access_->Enter(AuthorizationOf(request));
  if (!grant.ok()) return Answer(writer, grant.status());
  auto received = std::make_shared<http::Request>(std::move(request));
  const size_t bytes = received->body.size();
  pipeline_->Detokenize(
      bytes,
      [this, received]() -> absl::StatusOr<DetokenizeSpec> {
        LOCKSTEP_ASSIGN_OR_RETURN(const RequestContext context,
                                  MakeContext(*received));
        return ParseDetokenizeRequest(received->body, context);
      },
      AfterRelease(*grant, [writer](absl::StatusOr<std::string> text) {
        if (!text.ok()) return Answer(writer, text.status());
        Answer(writer, Json{{"prompt", *text}});
      }));
}

void Service::ListModels(Writer writer) const {
  const auto model = groups_->Model();
  if (!model.ok()) return Answer(writer, model.status());
  Answer(writer, Json{{"object", "list"},
                      {"data", Json::array({ModelJson(*model, created_s_)})}});
}

void Service::GetModel(const http::Request& request, Writer writer) const {
  const auto model = groups_->Model();
  if (!model.ok()) return Answer(writer, model.status());
  const absl::Status known = CheckModelName(request.wildcard, *model);
  if (!known.ok()) return Answer(writer, known);
  Answer(writer, ModelJson(*model, created_s_));
}

void Service::Health(Writer writer) const {
  if (draining_.load()) {
    return Answer(writer, MakeError(ErrorReason::kGatewayDraining,
                                    "the gateway is shutting down."));
  }
  const absl::Status ready = readiness_();
  if (!ready.ok()) return Answer(writer, ready);
  writer->Send({200, {}, ""});
}

// What runs goes on to its end, as after SIGTERM.
void Service::Drain(const http::Request& request, Writer writer) const {
  const absl::Status allowed = access_->CheckMayDrain(AuthorizationOf(request));
  if (!allowed.ok()) return Answer(writer, allowed);
  if (drain_ == nullptr) {
    return Answer(writer, absl::UnimplementedError(
                              "this gateway is drained by who started it."));
  }
  http::Response response = JsonResponse({{"status", "draining"}});
  response.status = 202;
  writer->Send(std::move(response));
  drain_();
}

}  // namespace lockstep::openai
