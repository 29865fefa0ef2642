#include "tokenizer_service/options.h"

#include <absl/strings/match.h>
#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <gflags/gflags.h>

#include "common/environment_flags.h"
#include "common/status_macros.h"

DEFINE_string(model, "",
              "The model whose tokenizer is served: a Hugging Face folder or "
              "a GGUF file.");
DEFINE_string(listen, "0.0.0.0:50054",
              "host:port of the gRPC server; port 0 takes a free one.");
DEFINE_int32(threads, 2, "Threads that encode, decode and render; 1 to 256.");

namespace lockstep {
namespace {

constexpr int kMaxThreads = 256;

absl::Status CheckAddress(absl::string_view address) {
  const size_t colon = address.rfind(':');
  uint32_t port = 0;
  if (colon == absl::string_view::npos || colon == 0 ||
      !absl::SimpleAtoi(address.substr(colon + 1), &port) || port > 65535) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--listen is \"", address, "\"; expected host:port, port 0 to 65535."));
  }
  return absl::OkStatus();
}

absl::Status Check(const TokenizerOptions& options) {
  if (options.model.empty()) {
    return absl::InvalidArgumentError(
        "--model is not set; name a Hugging Face folder or a GGUF file.");
  }
  if (options.threads < 1 || options.threads > kMaxThreads) {
    return absl::InvalidArgumentError(
        absl::StrCat("--threads is ", options.threads, "; expected 1 to ",
                     kMaxThreads, "."));
  }
  return CheckAddress(options.listen);
}

}  // namespace

std::string TokenizerOptions::ToString() const {
  return absl::StrCat("model=", model, " listen=", listen,
                      " threads=", threads);
}

absl::StatusOr<TokenizerOptions> ParseTokenizerOptions(int argc, char** argv) {
  gflags::SetUsageMessage("tokenizer --model PATH [--listen HOST:PORT]");
  LOCKSTEP_RETURN_IF_ERROR(SetFlagsFromEnvironment());
  gflags::ParseCommandLineFlags(&argc, &argv, /*remove_flags=*/true);
  if (argc > 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", argv[1], "\" is no flag; see --help."));
  }
  TokenizerOptions options;
  options.model = FLAGS_model;
  options.listen = FLAGS_listen;
  options.threads = FLAGS_threads;
  LOCKSTEP_RETURN_IF_ERROR(Check(options));
  return options;
}

}  // namespace lockstep
