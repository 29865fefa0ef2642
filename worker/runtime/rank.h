#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <absl/time/time.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kernels/ops.h"
#include "kernels/threads/thread_pool.h"
#include "proto/group.pb.h"
#include "proto/worker.pb.h"
#include "worker/collectives/collective_kind.h"
#include "worker/engine/engine.h"
#include "worker/engine/model_engine.h"
#include "worker/grammar/grammar_store.h"
#include "worker/grammar/token_bytes.h"
#include "worker/model_spec/model_defaults.h"
#include "worker/model_spec/shard.h"
#include "worker/runtime/kv_capacity.h"
#include "worker/runtime/numerics.h"
#include "worker/runtime/rank_collective.h"
#include "worker/runtime/rank_device.h"
#include "worker/scheduler/scheduler_options.h"
#include "worker/weights/model_files.h"

namespace lockstep {

struct RankOptions {
  std::string model;  // a Hugging Face folder or a .gguf file
  WeightOptions weights = {};
  DeviceChoice device = {};
  int rank = 0;
  int size = 1;                  // tensor parallel
  bool expert_parallel = false;  // ranks hold whole experts
  int local_index = 0;           // among the ranks of this host
  int local_ranks = 1;
  int threads = 0;  // of the kernels; 0: the cores, shared among local ranks
  std::string cpu_isa = "auto";
  Numerics numerics;
  CollectiveKind collective = CollectiveKind::kSingle;
  absl::Duration group_timeout = absl::Seconds(120);
  // See RankCollective::Options::failed.
  std::function<void(const absl::Status&)> collective_failed = nullptr;
  int page_size = 16;                 // tokens
  int64_t kv_cache_memory_bytes = 0;  // 0: see DefaultKvMemory
  int num_pages = 0;                  // 0: as memory allows
  int max_step_tokens = 512;
  int max_sequences = 64;
  int max_context = 0;            // tokens; 0: the model's
  bool sampling_defaults = true;  // are the model's
};

// What one rank computes with, from the model's file to the engine. It comes
// up in the order in which a process does:
//
//   LOCKSTEP_ASSIGN_OR_RETURN(auto rank, Rank::Open(options));
//   …start the other local ranks…              // no thread runs yet
//   LOCKSTEP_RETURN_IF_ERROR(rank->StartKernels());
//   LOCKSTEP_RETURN_IF_ERROR(rank->OpenCollective(host));
//   …rendezvous with rank->hello()…
//   LOCKSTEP_RETURN_IF_ERROR(rank->Agree(num_pages));
//   LOCKSTEP_RETURN_IF_ERROR(rank->MeetRanks(collective_address));
//   LOCKSTEP_RETURN_IF_ERROR(rank->Load());
//   rank->engine()…
//
// One thread, but for EndCollective.
class Rank {
 public:
  // Maps the model and checks that it can be cut as asked and that there is
  // memory for it.
  static absl::StatusOr<std::unique_ptr<Rank>> Open(const RankOptions& options);

  ~Rank();

  absl::Status StartKernels();

  // Makes what the other ranks join this one's collective by; `host` is this
  // host's address on the way to the leader, where they need one.
  absl::Status OpenCollective(const std::string& host);

  // All a leader compares, and what ranks reach this one by. REQUIRES:
  // StartKernels, OpenCollective.
  absl::StatusOr<v1::Hello> hello() const;

  // Joins the ranks of the group, which the rendezvous has found, and exchanges
  // known values with them: from then on the group has formed. Each exchange
  // has a time limit; its failure names the rank.
  absl::Status MeetRanks(const v1::CollectiveAddress& others);

  // Ends the exchanges of all ranks, in progress and to come, with an error
  // that blames a rank. Any thread, at any time.
  void EndCollective(const absl::Status& error) { collective_.End(error); }

  // No step comes any more, and other ranks may leave.
  void CloseCollective() { collective_.Close(); }

  // After MeetRanks. Its counters may be read from any thread.
  const Collective* collective() { return collective_.get(); }

  // Takes over the number of pages that the group has agreed on.
  absl::Status Agree(int num_pages);

  // After Agree; in a group, after MeetRanks. Minutes, for a large model: every
  // few seconds `tell` is told how far it is.
  absl::Status Load(
      const std::function<void(const std::string&)>& tell = nullptr);

  // After Load.
  Engine* engine() { return engine_.get(); }

  // After StartKernels.
  GrammarStore* grammars() { return grammars_.get(); }

  // After Agree.
  const SchedulerOptions& scheduler_options() const {
    return scheduler_options_;
  }
  v1::ModelInfo model_info(const std::string& name) const;
  v1::ServerInfo server_info() const;
  // Or makes embeddings alone.
  bool generates() const { return model_.config.has_head; }
  // Where the model's files contradict each other, a sentence each.
  const std::vector<std::string>& notes() const { return defaults_.notes; }

  // One line: what is served, how it is cut and on what it runs.
  std::string Description() const;

 private:
  Rank(const RankOptions& options, ModelFiles model, ModelDefaults defaults,
       Shard shard, std::unique_ptr<GpuRank> gpu, int64_t kv_memory_bytes);
  void StartGrammars();

  absl::Status CheckMemory() const;
  ModelEngine::Options EngineOptions(int num_pages) const;

  // The tensor-parallel sizes whose answers are bit-identical to this group's.
  std::vector<int> identical_sizes() const;

  const RankOptions options_;
  const ModelFiles model_;
  const ModelDefaults defaults_;
  const Shard shard_;
  const std::unique_ptr<GpuRank> gpu_;  // null: the CPU computes
  const KvCapacityInput capacity_;
  int own_num_pages_ = 0;
  int threads_ = 1;
  bool has_free_core_ = false;
  SchedulerOptions scheduler_options_;

  std::unique_ptr<kernels::ThreadPool> pool_;
  std::optional<kernels::Ops> ops_;
  RankCollective collective_;
  // Read by Open; taken by StartGrammars.
  absl::StatusOr<TokenBytes> token_bytes_ = absl::UnknownError("");
  std::string token_bytes_digest_;  // empty: there are none
  std::string tokens_digest_;       // the same; of what the ids stand for
  std::unique_ptr<GrammarStore> grammars_;
  std::unique_ptr<Engine> engine_;
};

}  // namespace lockstep
