// A chat in the terminal with the model that a gateway serves.

#include <absl/status/status.h>
#include <absl/strings/str_cat.h>
#include <gflags/gflags.h>
#include <grpc/support/log.h>

#include <string>
#include <utility>

#include "common/environment_flags.h"
#include "common/security/grpc_credentials.h"
#include "common/status_macros.h"
#include "frontend/chat/chat_client.h"
#include "frontend/chat/session.h"
#include "frontend/chat/terminal.h"

DEFINE_string(server, "localhost:50051", "host:port of the gateway.");
DEFINE_string(api_key, "",
              "A key of the gateway's, where it wants one; LOCKSTEP_API_KEY "
              "says it without showing it to others of this machine.");
DEFINE_string(tls_ca, "",
              "PEM file of the CAs that the gateway's certificate must be of; "
              "empty: no TLS.");
DEFINE_string(tls_name, "",
              "The name that it must have; empty: that of --server.");
DEFINE_string(system, "", "The conversation's system message.");
DEFINE_double(temperature, 0.7, "How freely tokens are chosen; 0 is greedy.");
DEFINE_uint32(max_tokens, 0,
              "Most tokens of an answer; 0 is the rest of the context.");

namespace lockstep {
namespace {

absl::StatusOr<ChatOptions> ParseOptions(int argc, char** argv) {
  gflags::SetUsageMessage("chat [--server HOST:PORT] [--system TEXT]");
  LOCKSTEP_RETURN_IF_ERROR(ParseFlags(argc, argv));
  ChatOptions options;
  options.system = FLAGS_system;
  options.temperature = FLAGS_temperature;
  if (FLAGS_max_tokens > 0) options.max_tokens = FLAGS_max_tokens;
  return options;
}

absl::StatusOr<ChatAccess> AccessFromFlags() {
  LOCKSTEP_ASSIGN_OR_RETURN(
      ClientTls tls,
      StartClientTls({.ca = {"tls_ca", FLAGS_tls_ca}}, FLAGS_tls_name));
  return ChatAccess{FLAGS_api_key, std::move(tls)};
}

absl::StatusOr<std::string> ModelName(ChatClient& client, Terminal& terminal) {
  ChatCall call;
  const Terminal::InterruptWatch watch(terminal, [&] { call.Cancel(); });
  auto name = client.ModelName(&call);
  if (call.is_cancelled()) return absl::CancelledError("Cancelled.");
  return name;
}

// See ChatSession::Run.
absl::StatusOr<bool> Chat(int argc, char** argv, Terminal& terminal) {
  LOCKSTEP_ASSIGN_OR_RETURN(const ChatOptions options,
                            ParseOptions(argc, argv));
  LOCKSTEP_ASSIGN_OR_RETURN(const ChatAccess access, AccessFromFlags());
  ChatClient client(FLAGS_server, access);
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string model,
                            ModelName(client, terminal));
  if (terminal.is_interactive()) {
    terminal.WriteDim(
        absl::StrCat(model, " at ", FLAGS_server, "; /help lists commands."));
  }
  return ChatSession(options, &terminal, &client).Run();
}

}  // namespace
}  // namespace lockstep

int main(int argc, char** argv) {
  lockstep::Terminal terminal;
  gpr_set_log_verbosity(GPR_LOG_SEVERITY_ERROR);
  const auto went_well = lockstep::Chat(argc, argv, terminal);
  if (!went_well.ok()) terminal.WriteError(went_well.status().message());
  return went_well.value_or(false) ? 0 : 1;
}
