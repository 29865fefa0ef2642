#pragma once

#include <absl/status/statusor.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "frontend/access/access_control.h"
#include "frontend/generation/pipeline.h"
#include "frontend/http/request_reader.h"
#include "frontend/http/router.h"
#include "frontend/openai/request.h"
#include "frontend/openai/unknown_fields.h"
#include "frontend/routing/group_set.h"

namespace lockstep::openai {

// OpenAI's API, with vLLM's additions, over the pipeline: converts, calls,
// converts back. docs/openai.md lists the routes.
//
//   Service service(&pipeline, &groups, readiness);
//   http::Server::Start(options, service.Routes());
//
// Any thread. The first three arguments, and this, must outlive every request.
class Service {
 public:
  // `readiness`: whether requests can be answered, for probes. `drain` is
  // called where a client that may asks for it; null: that is UNIMPLEMENTED.
  Service(Pipeline* pipeline, const GroupSet* groups,
          const AccessControl* access, std::function<absl::Status()> readiness,
          std::function<void()> drain = nullptr);

  std::vector<http::Route> Routes();

  // Whether its header alone keeps a request out: 401 for want of a key.
  http::Refusal Guard(const http::Request& request) const;

  // From here on it is not ready, whatever the worker is.
  void SetDraining() { draining_.store(true); }

  const UnknownFields& unknown_fields() const { return unknown_fields_; }

 private:
  using Writer = std::shared_ptr<http::ResponseWriter>;
  using ParseGenerate = absl::StatusOr<ParsedRequest> (*)(
      absl::string_view body, const RequestContext& context);

  void Generate(http::Request request, Writer writer, ParseGenerate parse);
  void Embed(http::Request request, Writer writer);
  void Tokenize(http::Request request, Writer writer);
  void Detokenize(http::Request request, Writer writer);
  void ListModels(Writer writer) const;
  void GetModel(const http::Request& request, Writer writer) const;
  void Health(Writer writer) const;
  void Drain(const http::Request& request, Writer writer) const;

  absl::StatusOr<RequestContext> MakeContext(const http::Request& request);

  Pipeline* const pipeline_;
  const GroupSet* const groups_;
  const AccessControl* const access_;
  const std::function<absl::Status()> readiness_;
  const std::function<void()> drain_;
  const int64_t created_s_;  // of the model, to clients
  UnknownFields unknown_fields_;
  std::atomic<bool> draining_{false};
};

}  // namespace lockstep::openai
