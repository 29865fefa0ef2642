#include "bench/load/load_options.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_split.h>
#include <gflags/gflags.h>

#include <utility>

#include "bench/load/arrivals.h"
#include "bench/load/text_file.h"
#include "common/flag_check.h"
#include "common/status_macros.h"

DEFINE_string(target, "", "host:port of a gateway; of its HTTP with openai.");
DEFINE_string(protocol, "grpc", "grpc, or openai: POST /v1/completions.");
DEFINE_string(api_key, "", "Sent as a bearer's, with openai.");
DEFINE_int32(connections, 4, "Of gRPC, taken in turn; 1 to 1024.");
DEFINE_double(rate, 0,
              "Dialogues that begin in a second, whatever has been answered; "
              "0: --clients says how many there are at a time.");
DEFINE_string(arrivals, "poisson",
              "How they come: poisson (at random) or constant.");
DEFINE_string(trace, "",
              "A file that says it instead, a line each: "
              "seconds,prompt_tokens,output_tokens.");
DEFINE_int32(clients, 8, "Dialogues at a time, without --rate or --trace.");
DEFINE_double(seconds, 30, "In which dialogues begin.");
DEFINE_double(warmup, 5, "Seconds whose requests do not count.");
DEFINE_int32(prompt_tokens, 128, "What is said in a turn, on average.");
DEFINE_int32(output_tokens, 128, "The same of an answer.");
DEFINE_double(spread, 0, "0 to 1: both are drawn evenly within this part.");
DEFINE_int32(prefixes, 0, "Beginnings that dialogues share, one of them each.");
DEFINE_int32(prefix_tokens, 0, "Tokens of each of them.");
DEFINE_int32(turns, 1, "Of a dialogue, each with all before it.");
DEFINE_double(think, 1, "Seconds from an answer to the next turn.");
DEFINE_int32(vocabulary, 256, "Token ids are drawn below it.");
DEFINE_uint64(seed, 1, "The same seed asks the same at the same times.");
DEFINE_double(slo_first_token_ms, 2000, "Within which an answer must begin.");
DEFINE_double(slo_inter_token_ms, 200, "Between its tokens, on average.");
DEFINE_string(label, "run", "What the run is called in a report.");
DEFINE_string(out, "", "Writes the run to this file, as JSON.");
DEFINE_string(html, "", "Writes a report to this file.");
DEFINE_string(compare, "",
              "Files that --out has written, at most four, with commas: "
              "reports on them and loads nothing.");

namespace lockstep::bench {
namespace {

constexpr int kMostRuns = 4;
constexpr int kMostClients = 100'000;

absl::Status CheckRange(const char* flag, double value, double least,
                        double most) {
  if (value >= least && value <= most) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("--", flag, " is ", value,
                                                 "; it must be from ", least,
                                                 " to ", most, "."));
}

absl::Status CheckWord(const char* flag, const std::string& value,
                       const char* one, const char* other) {
  if (value == one || value == other) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "--", flag, " is \"", value, "\"; it must be ", one, " or ", other, "."));
}

absl::Status CheckNumbers() {
  LOCKSTEP_RETURN_IF_ERROR(
      CheckRangeFlag("connections", FLAGS_connections, 1, 1024));
  LOCKSTEP_RETURN_IF_ERROR(CheckRange("rate", FLAGS_rate, 0, 1e5));
  LOCKSTEP_RETURN_IF_ERROR(
      CheckRangeFlag("clients", FLAGS_clients, 1, kMostClients));
  LOCKSTEP_RETURN_IF_ERROR(
      CheckRange("seconds", FLAGS_seconds, 0, kMostSeconds));
  LOCKSTEP_RETURN_IF_ERROR(CheckRange("warmup", FLAGS_warmup, 0, kMostSeconds));
  LOCKSTEP_RETURN_IF_ERROR(CheckRange("think", FLAGS_think, 0, kMostSeconds));
  LOCKSTEP_RETURN_IF_ERROR(CheckRange("spread", FLAGS_spread, 0, 1));
  LOCKSTEP_RETURN_IF_ERROR(
      CheckRangeFlag("prompt_tokens", FLAGS_prompt_tokens, 1, kMostTokens));
  LOCKSTEP_RETURN_IF_ERROR(
      CheckRangeFlag("output_tokens", FLAGS_output_tokens, 1, kMostTokens));
  LOCKSTEP_RETURN_IF_ERROR(
      CheckRangeFlag("prefixes", FLAGS_prefixes, 0, kMostClients));
  LOCKSTEP_RETURN_IF_ERROR(
      CheckRangeFlag("prefix_tokens", FLAGS_prefix_tokens, 0, kMostTokens));
  LOCKSTEP_RETURN_IF_ERROR(CheckRangeFlag("turns", FLAGS_turns, 1, 1000));
  return CheckRangeFlag("vocabulary", FLAGS_vocabulary, 1, 1 << 30);
}

absl::StatusOr<std::vector<Arrival>> ArrivalsFromFlags() {
  if (!FLAGS_trace.empty()) {
    LOCKSTEP_ASSIGN_OR_RETURN(const std::string text,
                              ReadTextFile(FLAGS_trace));
    return ParseTrace(text, FLAGS_trace);
  }
  if (FLAGS_rate == 0) return std::vector<Arrival>();
  return FLAGS_arrivals == "poisson"
             ? PoissonArrivals(FLAGS_rate, FLAGS_seconds, FLAGS_seed)
             : ConstantArrivals(FLAGS_rate, FLAGS_seconds);
}

DialogueOptions DialoguesFromFlags() {
  return {.prompt_tokens = FLAGS_prompt_tokens,
          .output_tokens = FLAGS_output_tokens,
          .spread = FLAGS_spread,
          .prefixes = FLAGS_prefixes,
          .prefix_tokens = FLAGS_prefix_tokens,
          .turns = FLAGS_turns,
          .think_s = FLAGS_think,
          .vocabulary = FLAGS_vocabulary,
          .seed = FLAGS_seed};
}

// The flags of this file that were set, but for those that say where things
// are.
nlohmann::json Given() {
  nlohmann::json given = nlohmann::json::object();
  std::vector<gflags::CommandLineFlagInfo> flags;
  gflags::GetAllFlags(&flags);
  for (const auto& flag : flags) {
    const bool is_place = flag.name == "target" || flag.name == "out" ||
                          flag.name == "html" || flag.name == "api_key" ||
                          flag.name == "label";
    if (flag.filename.find("load_options") != std::string::npos &&
        !flag.is_default && !is_place) {
      given[flag.name] = flag.current_value;
    }
  }
  return given;
}

}  // namespace

absl::StatusOr<LoadOptions> LoadOptionsFromFlags() {
  LOCKSTEP_RETURN_IF_ERROR(CheckNumbers());
  LOCKSTEP_RETURN_IF_ERROR(
      CheckWord("protocol", FLAGS_protocol, "grpc", "openai"));
  LOCKSTEP_RETURN_IF_ERROR(
      CheckWord("arrivals", FLAGS_arrivals, "poisson", "constant"));
  LoadOptions options;
  options.slo = {.first_token_s = FLAGS_slo_first_token_ms / 1e3,
                 .inter_token_s = FLAGS_slo_inter_token_ms / 1e3};
  options.html = FLAGS_html;
  if (!FLAGS_compare.empty()) {
    options.compare = absl::StrSplit(FLAGS_compare, ',');
    if (options.compare.size() <= kMostRuns) return options;
    return absl::InvalidArgumentError(
        absl::StrCat("--compare names ", options.compare.size(),
                     " files; it takes at most ", kMostRuns, "."));
  }
  LOCKSTEP_RETURN_IF_ERROR(
      CheckAddressFlag("target", FLAGS_target, /*least_port=*/1));
  options.target = FLAGS_target;
  options.is_openai = FLAGS_protocol == "openai";
  options.api_key = FLAGS_api_key;
  options.connections = FLAGS_connections;
  options.run.dialogues = DialoguesFromFlags();
  LOCKSTEP_ASSIGN_OR_RETURN(options.run.arrivals, ArrivalsFromFlags());
  options.run.clients = FLAGS_clients;
  options.run.seconds = FLAGS_seconds;
  options.run.warmup_s = FLAGS_warmup;
  options.given = Given();
  options.label = FLAGS_label;
  options.out = FLAGS_out;
  return options;
}

}  // namespace lockstep::bench
