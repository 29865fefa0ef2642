#include "tokenizer_service/options.h"

#include <absl/strings/str_cat.h>
#include <gflags/gflags.h>

#include "common/flag_check.h"
#include "common/program/program_flags.h"
#include "common/security/tls_flags.h"
#include "common/status_macros.h"

DEFINE_string(model, "",
              "The model whose tokenizer is served: a Hugging Face folder, a "
              "GGUF file, or a hub's owner/name, of which the text is "
              "downloaded.");
DEFINE_string(chat_template, "",
              "A file with the chat template to use in place of the model's.");
DEFINE_string(listen, "0.0.0.0:50054",
              "host:port of the gRPC server; port 0 takes a free one.");
DEFINE_string(health_listen, "",
              "host:port of a health service of its own, in plain text, which "
              "answers from the start on; port 0 takes a free one. Empty: "
              "health is asked for at --listen alone.");
DEFINE_int32(threads, 2, "Threads that encode, decode and render; 1 to 256.");

namespace lockstep {
namespace {

constexpr int kMaxThreads = 256;

absl::Status Check(const TokenizerOptions& options) {
  if (options.model.empty()) {
    return absl::InvalidArgumentError(
        "--model is not set; name a Hugging Face folder, a GGUF file or a "
        "hub's owner/name.");
  }
  LOCKSTEP_RETURN_IF_ERROR(
      CheckRangeFlag("threads", options.threads, 1, kMaxThreads));
  if (!options.health_listen.empty()) {
    LOCKSTEP_RETURN_IF_ERROR(CheckAddressFlag(
        "health_listen", options.health_listen, /*least_port=*/0));
  }
  return CheckAddressFlag("listen", options.listen, /*least_port=*/0);
}

}  // namespace

std::string TokenizerOptions::ToString() const {
  return absl::StrCat("model=", model, " chat_template=", chat_template,
                      " listen=", listen, " health_listen=", health_listen,
                      " threads=", threads,
                      " tls=", lockstep::ToString(tls));
}

absl::StatusOr<TokenizerOptions> ParseTokenizerOptions(int argc, char** argv) {
  gflags::SetUsageMessage("tokenizer --model PATH [--listen HOST:PORT]");
  LOCKSTEP_RETURN_IF_ERROR(ParseProgramFlags(argc, argv));
  TokenizerOptions options;
  options.model = FLAGS_model;
  options.chat_template = FLAGS_chat_template;
  options.listen = FLAGS_listen;
  options.health_listen = FLAGS_health_listen;
  options.threads = FLAGS_threads;
  LOCKSTEP_ASSIGN_OR_RETURN(options.tls, ServerTlsFilesFromFlags());
  LOCKSTEP_RETURN_IF_ERROR(Check(options));
  return options;
}

}  // namespace lockstep
