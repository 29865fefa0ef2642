#include <cstddef>
#include <cstdint>
#include <variant>
#include <vector>

#include "common/request_id.h"
#include "frontend/generation/spec_check.h"
#include "frontend/grpc/request_parser.h"

namespace {

using lockstep::PromptSpec;

const lockstep::ServedModel kModel = {
    .name = "m", .max_context_tokens = 64, .vocabulary_size = 100};

void Require(bool holds) {
  if (!holds) __builtin_trap();
}

void CheckIds(const std::vector<uint32_t>& ids) {
  for (const uint32_t id : ids) Require(id < kModel.vocabulary_size);
}

void CheckPrompt(const PromptSpec& spec) {
  if (const auto* text = std::get_if<lockstep::TextPrompt>(&spec.prompt)) {
    Require(!text->text.empty());
  } else if (const auto* chat =
                 std::get_if<lockstep::ChatPrompt>(&spec.prompt)) {
    Require(!chat->messages.empty());
  } else {
    const auto& ids = std::get<lockstep::TokenPrompt>(spec.prompt).ids;
    Require(!ids.empty() && ids.size() < kModel.max_context_tokens);
    CheckIds(ids);
  }
}

void CheckGenerate(const lockstep::v1::GenerateRequest& request) {
  const auto spec = lockstep::ParseGenerateRequest(request, kModel);
  if (!spec.ok()) return;
  CheckPrompt(spec->prompt);
  Require(!spec->request_id.empty() && !spec->worker_request_id.empty());
  Require(spec->worker_request_id.size() <= lockstep::kMaxRequestIdBytes);
  Require(spec->stop.size() <= lockstep::kMaxStopStrings);
}

}  // namespace

// Whatever the bytes, read as a message of each kind: a refusal, or what the
// pipeline can work with.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  lockstep::v1::GenerateRequest generate;
  if (generate.ParseFromArray(data, static_cast<int>(size))) {
    CheckGenerate(generate);
  }
  lockstep::v1::TokenizeRequest tokenize;
  if (tokenize.ParseFromArray(data, static_cast<int>(size))) {
    const auto spec = lockstep::ParseTokenizeRequest(tokenize, kModel);
    if (spec.ok()) CheckPrompt(*spec);
  }
  lockstep::v1::DetokenizeRequest detokenize;
  if (detokenize.ParseFromArray(data, static_cast<int>(size))) {
    const auto spec = lockstep::ParseDetokenizeRequest(detokenize, kModel);
    if (spec.ok()) CheckIds(spec->ids);
  }
  return 0;
}
