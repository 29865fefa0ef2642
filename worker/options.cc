#include "worker/options.h"

#include <absl/strings/ascii.h>
#include <absl/strings/escaping.h>
#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/strip.h>
#include <gflags/gflags.h>

#include <algorithm>

#include "common/byte_size.h"
#include "common/flag_check.h"
#include "common/security/tls_flags.h"
#include "common/status_macros.h"
#include "hub/model_name.h"
#include "worker/collectives/collective_kind.h"
#include "worker/device_flags.h"
#include "worker/runtime/numerics.h"
#include "worker/weight_flags.h"

DEFINE_string(model, "",
              "The model: a Hugging Face folder, a .gguf file, or a hub's "
              "owner/name, owner/name@revision or owner/name:file.gguf, which "
              "is downloaded into the cache of HF_HUB_CACHE or HF_HOME. "
              "Required.");
DEFINE_string(served_model_name, "",
              "The name requests use. Default: that of the folder or file, or "
              "a hub's owner/name.");
DEFINE_string(listen, "0.0.0.0:50052",
              "host:port of the gRPC service; port 0 takes a free one.");
DEFINE_string(health_listen, "auto",
              "host:port of the health service, which answers from the start "
              "on; port 0 takes a free one. auto: 127.0.0.1:50053 for the "
              "leader, none for other ranks. Empty: none. Ranks that another "
              "one of their host has started have none.");
DEFINE_int32(metrics_port, 9091,
             "Port of /metrics, which Prometheus scrapes, 1 to 65535; 0: none. "
             "Ranks that another one of their host has started have none.");
DEFINE_int32(tensor_parallel_size, 1, "Ranks of the group, 1 to 64.");
DEFINE_bool(expert_parallel, false,
            "Ranks hold whole experts of a mixture, each some of them, instead "
            "of a part of each; docs/models.md says when. The same on all "
            "ranks.");
DEFINE_int32(rank, 0, "This process's rank; 0 leads the group.");
DEFINE_string(leader_address, "",
              "host:port at which the leader's group forms. Default: a free "
              "port of this host, where all ranks run on it, else "
              "127.0.0.1:7000.");
DEFINE_int32(local_ranks, 0,
             "Ranks on this host, which the first of them starts. 0: all from "
             "this rank on.");
DEFINE_int32(local_index, 0,
             "This rank's place among those of its host; above 0 it was "
             "started by the first. Set by that one.");
DEFINE_int32(num_nodes, 1,
             "Hosts of the group; each has as many of its ranks, which it "
             "starts. It must divide --tensor_parallel_size.");
DEFINE_int32(node_rank, 0,
             "This host's number among --num_nodes; 0 has the leader.");
DEFINE_string(collective, "auto",
              "How ranks exchange tensors: nccl (between GPUs, and there "
              "alone), shared_memory, gloo (TCP) or auto (nccl on GPUs, "
              "shared_memory where --num_nodes is 1, else gloo). On the CPU it "
              "changes no bit of an answer. The same on all ranks.");
DEFINE_int32(group_timeout, 120,
             "Seconds within which all ranks must have joined.");
DEFINE_int32(drain_timeout, 300,
             "Seconds that live requests have to end after SIGTERM.");
DEFINE_int32(step_timeout, 0,
             "Seconds after which a step counts as hanging, and the group as "
             "broken. 0: a large multiple of what the warm-up's steps took, "
             "and at least 60.");
DEFINE_int32(heartbeat_timeout, 10,
             "Seconds after which a rank that is silent, or that far behind, "
             "has failed, and the group with it.");
DEFINE_int32(threads, 0,
             "Threads of the kernels of each rank. 0: the usable cores, shared "
             "among the ranks of this host.");
DEFINE_string(cpu_isa, "auto",
              "Instruction set of the kernels: auto, avx512_vnni, avx2 or "
              "reference. It changes no bit of an answer.");
DEFINE_int32(page_size, 16,
             "Tokens of a KV page, a power of two from 1 to 256.");
DEFINE_string(arithmetic, "fast",
              "How matrix products are computed: fast (activations, and plain "
              "weights, rounded to integers of 14 bits) or strict "
              "(weights as stored, activations in fp32). The same on all "
              "ranks.");
DEFINE_string(kv_cache_type, "auto",
              "How keys and values are kept: fp32, fp16, bf16, int8 or auto "
              "(fp16 in fast arithmetic, fp32 in strict). The same on all "
              "ranks.");
DEFINE_string(kv_cache_memory, "auto",
              "Memory for KV pages of each rank, such as 512MiB, 2GiB or a "
              "number of bytes. auto: half of what packed weights leave of the "
              "memory of this host or its control group, shared among local "
              "ranks.");
DEFINE_int32(num_pages, 0,
             "KV pages of each rank, whatever memory they take. 0: as "
             "--kv_cache_memory allows.");
DEFINE_int32(max_step_tokens, 512, "Tokens computed in one step.");
DEFINE_int32(max_sequences, 64, "Sequences that run at the same time.");
DEFINE_int32(max_context, 0,
             "Tokens of a sequence, prompt and output. 0: the model's, as far "
             "as the KV cache holds it; where rope follows the length of a "
             "sequence, those it was trained with.");
DEFINE_int32(max_model_len, 0, "--max_context by the name that vLLM has.");
DEFINE_string(generation_config, "model",
              "Where the sampling of requests that do not say it comes from: "
              "model (generation_config.json, or general.sampling in GGUF) or "
              "none (temperature 1 and no limits, as the API says).");
DEFINE_int32(max_queued_requests, 256,
             "Requests that may wait for their first step.");
DEFINE_int64(max_queued_tokens, 0,
             "Prompt tokens that may wait for their first step. 0: eight times "
             "the context.");

namespace lockstep {
namespace {

constexpr char kDefaultHealthAddress[] = "127.0.0.1:50053";
constexpr char kDefaultLeaderAddress[] = "127.0.0.1:7000";
constexpr char kAnyLocalPort[] = "127.0.0.1:0";
constexpr int kMostRanks = 64;
constexpr int kMost = 1 << 20;
constexpr int kLongestSilence = 86'400;

absl::Status CheckRanges() {
  LOCKSTEP_RETURN_IF_ERROR(CheckRangeFlag(
      "tensor_parallel_size", FLAGS_tensor_parallel_size, 1, kMostRanks));
  const int size = FLAGS_tensor_parallel_size;
  LOCKSTEP_RETURN_IF_ERROR(CheckRangeFlag("rank", FLAGS_rank, 0, size - 1));
  LOCKSTEP_RETURN_IF_ERROR(
      CheckRangeFlag("local_ranks", FLAGS_local_ranks, 0,
                     size - FLAGS_rank + FLAGS_local_index));
  LOCKSTEP_RETURN_IF_ERROR(
      CheckRangeFlag("local_index", FLAGS_local_index, 0, FLAGS_rank));
  LOCKSTEP_RETURN_IF_ERROR(
      CheckRangeFlag("metrics_port", FLAGS_metrics_port, 0, kMaxPort));
  LOCKSTEP_RETURN_IF_ERROR(
      CheckRangeFlag("group_timeout", FLAGS_group_timeout, 1, kMost));
  LOCKSTEP_RETURN_IF_ERROR(
      CheckRangeFlag("drain_timeout", FLAGS_drain_timeout, 0, kMost));
  LOCKSTEP_RETURN_IF_ERROR(
      CheckRangeFlag("step_timeout", FLAGS_step_timeout, 0, kMost));
  LOCKSTEP_RETURN_IF_ERROR(CheckRangeFlag(
      "heartbeat_timeout", FLAGS_heartbeat_timeout, 2, kLongestSilence));
  LOCKSTEP_RETURN_IF_ERROR(CheckRangeFlag("threads", FLAGS_threads, 0, 1024));
  LOCKSTEP_RETURN_IF_ERROR(
      CheckRangeFlag("num_pages", FLAGS_num_pages, 0, 1 << 30));
  LOCKSTEP_RETURN_IF_ERROR(
      CheckRangeFlag("max_sequences", FLAGS_max_sequences, 1, 4096));
  LOCKSTEP_RETURN_IF_ERROR(CheckRangeFlag(
      "max_step_tokens", FLAGS_max_step_tokens, FLAGS_max_sequences, kMost));
  LOCKSTEP_RETURN_IF_ERROR(
      CheckRangeFlag("max_context", FLAGS_max_context, 0, 1 << 30));
  LOCKSTEP_RETURN_IF_ERROR(
      CheckRangeFlag("max_model_len", FLAGS_max_model_len, 0, 1 << 30));
  LOCKSTEP_RETURN_IF_ERROR(CheckRangeFlag("max_queued_requests",
                                          FLAGS_max_queued_requests, 1, kMost));
  return CheckRangeFlag("max_queued_tokens", FLAGS_max_queued_tokens, 0,
                        int64_t{1} << 40);
}

// Fit for a log, a URL and a JSON string as it is.
absl::Status CheckModelName() {
  constexpr size_t kMostBytes = 128;
  const std::string& name = FLAGS_served_model_name;
  const bool is_good = std::all_of(name.begin(), name.end(), [](char c) {
    return absl::ascii_isalnum(c) || absl::StrContains("._-/:@+", c);
  });
  if (is_good && name.size() <= kMostBytes) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "--served_model_name is \"", absl::CHexEscape(name.substr(0, kMostBytes)),
      "\"; it must be at most ", kMostBytes,
      " characters of [A-Za-z0-9._/:@+-]."));
}

absl::Status CheckPageSize() {
  LOCKSTEP_RETURN_IF_ERROR(
      CheckRangeFlag("page_size", FLAGS_page_size, 1, 256));
  if ((FLAGS_page_size & (FLAGS_page_size - 1)) == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "--page_size is ", FLAGS_page_size, "; it must be a power of two."));
}

// 0 for auto.
absl::StatusOr<int64_t> KvCacheMemoryBytes() {
  if (FLAGS_kv_cache_memory == "auto") return 0;
  const int64_t bytes = ParseByteSize(FLAGS_kv_cache_memory).value_or(0);
  if (bytes > 0) return bytes;
  return absl::InvalidArgumentError(absl::StrCat(
      "--kv_cache_memory is \"", FLAGS_kv_cache_memory,
      "\"; it must be auto or a size such as 512MiB, 2GiB or 65536 (bytes)."));
}

// --max_context, by either name.
absl::StatusOr<int> MaxContextFromFlags() {
  if (FLAGS_max_context == 0) return FLAGS_max_model_len;
  if (FLAGS_max_model_len == 0 || FLAGS_max_model_len == FLAGS_max_context) {
    return FLAGS_max_context;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "--max_model_len is ", FLAGS_max_model_len, " and --max_context is ",
      FLAGS_max_context, "; they are one thing: leave one of them out."));
}

absl::StatusOr<bool> SamplingDefaultsFromFlags() {
  if (FLAGS_generation_config == "model") return true;
  if (FLAGS_generation_config == "none") return false;
  return absl::InvalidArgumentError(
      absl::StrCat("--generation_config is \"", FLAGS_generation_config,
                   "\"; it must be model or none."));
}

// Of a first rank of its host, where several are said by --num_nodes.
absl::Status CheckNodes() {
  LOCKSTEP_RETURN_IF_ERROR(CheckRangeFlag("num_nodes", FLAGS_num_nodes, 1,
                                          FLAGS_tensor_parallel_size));
  LOCKSTEP_RETURN_IF_ERROR(
      CheckRangeFlag("node_rank", FLAGS_node_rank, 0, FLAGS_num_nodes - 1));
  if (FLAGS_tensor_parallel_size % FLAGS_num_nodes != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("--num_nodes is ", FLAGS_num_nodes,
                     "; it must divide --tensor_parallel_size of ",
                     FLAGS_tensor_parallel_size, "."));
  }
  if (FLAGS_num_nodes == 1 || FLAGS_local_index > 0) return absl::OkStatus();
  if (FLAGS_rank != 0 || FLAGS_local_ranks != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--", FLAGS_rank != 0 ? "rank" : "local_ranks", " is ",
        FLAGS_rank != 0 ? FLAGS_rank : FLAGS_local_ranks,
        "; with --num_nodes it follows from --node_rank: leave it out."));
  }
  if (FLAGS_leader_address.empty()) {
    return absl::InvalidArgumentError(
        "--leader_address is not given; with --num_nodes it is the host:port "
        "of the first host at which the others reach it.");
  }
  return absl::OkStatus();
}

std::string HealthAddress(int rank) {
  if (FLAGS_local_index > 0) return "";
  if (FLAGS_health_listen != "auto") return FLAGS_health_listen;
  return rank == 0 ? kDefaultHealthAddress : "";
}

// The ranks of this host: the first, or that which it has started this process
// as, and how many there are.
struct Placement {
  int rank = 0;
  int local_ranks = 0;
};

Placement PlacementFromFlags() {
  if (FLAGS_num_nodes > 1 && FLAGS_local_index == 0) {
    const int local_ranks = FLAGS_tensor_parallel_size / FLAGS_num_nodes;
    return {.rank = FLAGS_node_rank * local_ranks, .local_ranks = local_ranks};
  }
  return {.rank = FLAGS_rank,
          .local_ranks = FLAGS_local_ranks > 0
                             ? FLAGS_local_ranks
                             : FLAGS_tensor_parallel_size - FLAGS_rank};
}

std::string LeaderAddress(int local_ranks) {
  if (!FLAGS_leader_address.empty()) return FLAGS_leader_address;
  const bool all_are_local = local_ranks == FLAGS_tensor_parallel_size;
  return all_are_local ? kAnyLocalPort : kDefaultLeaderAddress;
}

}  // namespace

absl::StatusOr<WorkerOptions> OptionsFromFlags() {
  if (FLAGS_model.empty()) {
    return absl::InvalidArgumentError(
        "--model is not given; it names a Hugging Face folder, a .gguf file "
        "or a hub's owner/name.");
  }
  LOCKSTEP_RETURN_IF_ERROR(CheckRanges());
  LOCKSTEP_RETURN_IF_ERROR(CheckNodes());
  LOCKSTEP_RETURN_IF_ERROR(CheckModelName());
  LOCKSTEP_RETURN_IF_ERROR(CheckPageSize());
  LOCKSTEP_RETURN_IF_ERROR(
      CheckAddressFlag("listen", FLAGS_listen, /*least_port=*/0));
  const Placement placement = PlacementFromFlags();
  LOCKSTEP_RETURN_IF_ERROR(
      CheckAddressFlag("leader_address", LeaderAddress(placement.local_ranks),
                       /*least_port=*/placement.rank == 0 ? 0 : 1));
  const std::string health_listen = HealthAddress(placement.rank);
  if (!health_listen.empty()) {
    LOCKSTEP_RETURN_IF_ERROR(CheckAddressFlag("health_listen", health_listen,
                                              /*least_port=*/0));
  }

  LOCKSTEP_ASSIGN_OR_RETURN(
      const Numerics numerics,
      ParseNumerics(FLAGS_arithmetic, FLAGS_kv_cache_type));
  LOCKSTEP_ASSIGN_OR_RETURN(const int64_t kv_cache_memory_bytes,
                            KvCacheMemoryBytes());
  LOCKSTEP_ASSIGN_OR_RETURN(
      const CollectiveKind collective,
      ParseCollective(FLAGS_collective, FLAGS_tensor_parallel_size,
                      FLAGS_num_nodes));
  LOCKSTEP_ASSIGN_OR_RETURN(const WeightOptions weights,
                            WeightOptionsFromFlags());
  LOCKSTEP_ASSIGN_OR_RETURN(const DeviceChoice device, DeviceChoiceFromFlags());
  LOCKSTEP_ASSIGN_OR_RETURN(const int max_context, MaxContextFromFlags());
  LOCKSTEP_ASSIGN_OR_RETURN(const bool sampling_defaults,
                            SamplingDefaultsFromFlags());

  WorkerOptions options;
  options.rank = {.model = FLAGS_model,
                  .weights = weights,
                  .device = device,
                  .rank = placement.rank,
                  .size = FLAGS_tensor_parallel_size,
                  .expert_parallel = FLAGS_expert_parallel,
                  .local_index = FLAGS_local_index,
                  .local_ranks = placement.local_ranks,
                  .threads = FLAGS_threads,
                  .cpu_isa = FLAGS_cpu_isa,
                  .numerics = numerics,
                  .collective = collective,
                  .page_size = FLAGS_page_size,
                  .kv_cache_memory_bytes = kv_cache_memory_bytes,
                  .num_pages = FLAGS_num_pages,
                  .max_step_tokens = FLAGS_max_step_tokens,
                  .max_sequences = FLAGS_max_sequences,
                  .max_context = max_context,
                  .sampling_defaults = sampling_defaults};
  options.served_model_name = FLAGS_served_model_name.empty()
                                  ? DefaultModelName(FLAGS_model)
                                  : FLAGS_served_model_name;
  options.listen = FLAGS_listen;
  LOCKSTEP_ASSIGN_OR_RETURN(options.tls, ServerTlsFilesFromFlags());
  options.health_listen = health_listen;
  options.metrics_port = FLAGS_local_index > 0 ? 0 : FLAGS_metrics_port;
  options.leader_address = LeaderAddress(placement.local_ranks);
  options.starts_local_ranks =
      FLAGS_local_index == 0 && options.rank.local_ranks > 1;
  options.num_nodes = FLAGS_num_nodes;
  options.node_rank = FLAGS_node_rank;
  options.group_timeout = absl::Seconds(FLAGS_group_timeout);
  LOCKSTEP_ASSIGN_OR_RETURN(options.load_timeout, LoadTimeoutFromFlags());
  options.drain_timeout = absl::Seconds(FLAGS_drain_timeout);
  options.step_timeout = absl::Seconds(FLAGS_step_timeout);
  options.heartbeat_timeout = absl::Seconds(FLAGS_heartbeat_timeout);
  options.max_queued_requests = FLAGS_max_queued_requests;
  options.max_queued_tokens = FLAGS_max_queued_tokens;
  return options;
}

std::string WorkerOptions::ToString() const {
  std::string text;
  const auto add = [&text](absl::string_view flag, const auto& value) {
    absl::StrAppend(&text, text.empty() ? "" : " ", "--", flag, "=", value);
  };
  add("model", rank.model);
  absl::StrAppend(&text, " ", lockstep::ToString(rank.weights), " ",
                  lockstep::ToString(rank.device));
  add("served_model_name", served_model_name);
  add("listen", listen);
  add("health_listen", health_listen);
  add("metrics_port", metrics_port);
  add("tls", lockstep::ToString(tls));
  add("tensor_parallel_size", rank.size);
  add("expert_parallel", rank.expert_parallel ? "true" : "false");
  add("rank", rank.rank);
  add("leader_address", leader_address);
  add("local_ranks", rank.local_ranks);
  add("local_index", rank.local_index);
  add("num_nodes", num_nodes);
  add("node_rank", node_rank);
  add("collective", CollectiveName(rank.collective));
  add("group_timeout", absl::ToInt64Seconds(group_timeout));
  add("load_timeout", absl::ToInt64Seconds(load_timeout));
  add("drain_timeout", absl::ToInt64Seconds(drain_timeout));
  add("step_timeout", absl::ToInt64Seconds(step_timeout));
  add("heartbeat_timeout", absl::ToInt64Seconds(heartbeat_timeout));
  add("threads", rank.threads);
  add("cpu_isa", rank.cpu_isa);
  add("arithmetic", rank.numerics.arithmetic_name());
  add("kv_cache_type", rank.numerics.kv_type_name());
  add("page_size", rank.page_size);
  const int64_t kv_bytes = rank.kv_cache_memory_bytes;
  add("kv_cache_memory", kv_bytes > 0 ? absl::StrCat(kv_bytes) : "auto");
  add("num_pages", rank.num_pages);
  add("max_step_tokens", rank.max_step_tokens);
  add("max_sequences", rank.max_sequences);
  add("max_context", rank.max_context);
  add("generation_config", rank.sampling_defaults ? "model" : "none");
  add("max_queued_requests", max_queued_requests);
  add("max_queued_tokens", max_queued_tokens);
  return text;
}

}  // namespace lockstep
