#include "tests/chaos/play_round.h"

#include <absl/strings/str_cat.h>
#include <absl/time/clock.h>
#include <signal.h>

#include <cstdlib>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "common/status_macros.h"
#include "tests/chaos/client.h"
#include "tests/chaos/leftovers.h"
#include "tests/chaos/link_proxy.h"
#include "tests/chaos/ranks.h"
#include "tests/chaos/verdict.h"
#include "tests/testing/process.h"

namespace lockstep::testing {
namespace {

constexpr absl::Duration kStartLimit = absl::Seconds(60);
// The limits that the groups are given, and so the longest that a fault can go
// unnoticed.
constexpr int kHeartbeatTimeoutS = 3;
constexpr int kStepTimeoutS = 4;
constexpr int kDrainTimeoutS = 2;
constexpr int kFormingTimeoutS = 3;
constexpr absl::Duration kNoticedWithin = absl::Seconds(kStepTimeoutS);
constexpr absl::Duration kGoneWithin = absl::Seconds(5);

constexpr uint32_t kVocabulary = 500;
constexpr int kEndlessTokens = 20'000;

LinkProxy::Fault LinkFault(GroupFault fault) {
  switch (fault) {
    case GroupFault::kCut:
      return LinkProxy::Fault::kCut;
    case GroupFault::kSilence:
      return LinkProxy::Fault::kSilence;
    case GroupFault::kFlipBit:
      return LinkProxy::Fault::kFlipBit;
    case GroupFault::kDouble:
      return LinkProxy::Fault::kDouble;
    case GroupFault::kDrop:
      return LinkProxy::Fault::kDrop;
    default:
      return LinkProxy::Fault::kNone;
  }
}

class Play {
 public:
  Play(const Round& round, const Arena& arena)
      : round_(round),
        random_(round.seed),
        ranks_({.worker = arena.worker,
                .model = arena.model,
                .size = round.size,
                .flags = Flags(round),
                .launcher = Launcher(round),
                .has_child = round.has_child}) {}

  absl::Status Run() {
    LOCKSTEP_RETURN_IF_ERROR(Start());
    LOCKSTEP_RETURN_IF_ERROR(Reach());
    const absl::Time begin = absl::Now();
    LOCKSTEP_RETURN_IF_ERROR(Strike());
    if (IsHarmless()) {
      LOCKSTEP_RETURN_IF_ERROR(ExpectAnswers());
    } else if (IsDrained()) {
      LOCKSTEP_RETURN_IF_ERROR(ExpectDrained());
    } else {
      LOCKSTEP_RETURN_IF_ERROR(ExpectGone(begin));
      LOCKSTEP_RETURN_IF_ERROR(CheckVerdict(round_, ranks_));
    }
    LOCKSTEP_RETURN_IF_ERROR(ExpectEnds());
    return leftovers_.Check(ranks_);
  }

  std::string Output() const { return ranks_.Output(); }

 private:
  static std::vector<std::string> Flags(const Round& round) {
    const int forming = round.state == GroupState::kForming
                            ? kFormingTimeoutS
                            : static_cast<int>(kStartLimit / absl::Seconds(1));
    return {"--num_pages=8192",
            "--max_step_tokens=64",
            absl::StrCat("--collective=",
                         round.has_gloo ? "gloo" : "shared_memory"),
            absl::StrCat("--heartbeat_timeout=", kHeartbeatTimeoutS),
            absl::StrCat("--step_timeout=", kStepTimeoutS),
            absl::StrCat("--drain_timeout=", kDrainTimeoutS),
            absl::StrCat("--group_timeout=", forming)};
  }

  static std::vector<std::string> Launcher(const Round& round) {
    if (round.fault != GroupFault::kNoShm) return {};
    return {"/bin/sh", "-c",
            "exec unshare --mount /bin/sh -c '"
            "mount -t tmpfs -o size=4k tmpfs /dev/shm && "
            "head -c 4096 /dev/zero > /dev/shm/full && exec \"$@\"' sh \"$@\"",
            "sh"};
  }

  absl::Status StartFollower(int rank) {
    std::string address = ranks_.leader_address();
    if (rank == round_.victim && round_.fault == GroupFault::kRefused) {
      address = "127.0.0.1:1";
    } else if (rank == round_.victim &&
               LinkFault(round_.fault) != LinkProxy::Fault::kNone) {
      LOCKSTEP_ASSIGN_OR_RETURN(proxy_, LinkProxy::Start(address, round_.seed));
      address = proxy_->address();
    }
    return ranks_.StartFollower(rank, address);
  }

  absl::Status Start() {
    LOCKSTEP_RETURN_IF_ERROR(ranks_.StartLeader());
    const bool waits = round_.state == GroupState::kForming &&
                       round_.fault != GroupFault::kRefused;
    for (int rank = 1; rank < round_.size; ++rank) {
      if (waits && rank == MissingRank(round_)) continue;
      LOCKSTEP_RETURN_IF_ERROR(StartFollower(rank));
    }
    if (round_.state != GroupState::kForming) return absl::OkStatus();
    for (int rank = 1; rank < round_.size; ++rank) {
      if (!ranks_.is_started(rank)) continue;
      if (rank == round_.victim && round_.fault == GroupFault::kRefused) {
        continue;
      }
      LOCKSTEP_RETURN_IF_ERROR(
          ranks_.AwaitLine(0, absl::StrCat("rank ", rank, " has joined")));
    }
    return absl::OkStatus();
  }

  // From started processes to the state in which it happens.
  absl::Status Reach() {
    switch (round_.state) {
      case GroupState::kForming:
        return absl::OkStatus();
      case GroupState::kLoading:
        return ranks_.AwaitLine(round_.victim, "the group has formed");
      case GroupState::kIdle:
        return ranks_.AwaitServing();
      case GroupState::kPrefill:
        LOCKSTEP_RETURN_IF_ERROR(ranks_.AwaitServing());
        return StartClients(PromptTokens(), /*await_tokens=*/false);
      case GroupState::kDecode:
        LOCKSTEP_RETURN_IF_ERROR(ranks_.AwaitServing());
        return StartClients(/*prompt_tokens=*/30, /*await_tokens=*/true);
      case GroupState::kDrain:
        LOCKSTEP_RETURN_IF_ERROR(ranks_.AwaitServing());
        LOCKSTEP_RETURN_IF_ERROR(
            StartClients(/*prompt_tokens=*/30, /*await_tokens=*/true));
        ranks_.Signal(0, SIGTERM);
        return ranks_.AwaitLine(0, "draining");
    }
    return absl::OkStatus();
  }

  // Some whose answers take longer than the round, and one that is short.
  absl::Status StartClients(int prompt_tokens, bool await_tokens) {
    const int count = 2 + static_cast<int>(random_() % 5);
    for (int i = 0; i <= count; ++i) {
      const bool is_short = i == count;
      Client::Options options;
      for (int token = is_short ? prompt_tokens - 5 : 0; token < prompt_tokens;
           ++token) {
        options.request.add_prompt_token_ids(3 + random_() % kVocabulary);
      }
      v1::SamplingParams& sampling = *options.request.mutable_sampling();
      sampling.set_max_tokens(is_short ? 3 : AnswerTokens());
      sampling.set_ignore_eos(true);
      if (!is_short && random_() % 4 == 0) sampling.set_n(2);
      clients_.push_back(std::make_unique<Client>(ranks_.channel(), options));
    }
    for (const auto& client : clients_) {
      const bool reached = await_tokens
                               ? client->WaitForTokens(kStartLimit)
                               : client->WaitForAcceptance(kStartLimit);
      if (reached) continue;
      return absl::InternalError("a client's request does not begin.");
    }
    return absl::OkStatus();
  }

  // Where nothing is to happen to them, clients wait for their answers, and
  // four ranks on one core compute 64 tokens over Gloo in some 50 ms.
  int AnswerTokens() const { return IsHarmless() ? 50 : kEndlessTokens; }
  int PromptTokens() const { return IsHarmless() ? 3000 : kEndlessTokens; }

  absl::Status Strike() {
    switch (round_.fault) {
      case GroupFault::kKill:
        ranks_.Signal(round_.victim, SIGKILL);
        return absl::OkStatus();
      case GroupFault::kTerminate:
        ranks_.Signal(round_.victim, SIGTERM);
        return absl::OkStatus();
      case GroupFault::kStop:
        ranks_.Signal(round_.victim, SIGSTOP);
        // It joins, as far as the others can see.
        if (round_.state != GroupState::kForming) return absl::OkStatus();
        return StartFollower(MissingRank(round_));
      case GroupFault::kRefused:
      case GroupFault::kNoShm:
        return absl::OkStatus();
      default:
        proxy_->Break(LinkFault(round_.fault));
        return absl::OkStatus();
    }
  }

  // Followers leave when their leader says so, and no one uses /dev/shm.
  bool IsHarmless() const {
    if (round_.fault == GroupFault::kNoShm) return true;
    return round_.fault == GroupFault::kTerminate && round_.victim > 0 &&
           round_.state != GroupState::kForming &&
           round_.state != GroupState::kDrain;
  }

  bool IsDrained() const {
    return round_.fault == GroupFault::kTerminate &&
           (round_.state == GroupState::kDrain ||
            (round_.victim == 0 && round_.state != GroupState::kForming &&
             round_.state != GroupState::kLoading));
  }

  absl::Status ExpectAnswers() {
    if (round_.state == GroupState::kLoading) {
      LOCKSTEP_RETURN_IF_ERROR(ranks_.AwaitServing());
    }
    for (const auto& client : clients_) {
      if (!client->WaitForEnd(kStartLimit)) {
        return absl::InternalError("a client waits for its answer.");
      }
      LOCKSTEP_RETURN_IF_ERROR(client->CheckEnd());
      if (client->end() != Client::End::kSummary) {
        return absl::InternalError("a client was disturbed.");
      }
    }
    ranks_.Signal(0, SIGTERM);
    return ExpectDrained();
  }

  absl::Status ExpectDrained() {
    for (int rank = 0; rank < round_.size; ++rank) {
      LOCKSTEP_RETURN_IF_ERROR(
          ExpectGoodExit(rank, absl::Seconds(kDrainTimeoutS) + kGoneWithin));
    }
    return absl::OkStatus();
  }

  absl::Status ExpectGoodExit(int rank, absl::Duration timeout) {
    const auto code = ranks_.WaitForExit(rank, timeout);
    if (code.ok() && code->value_or(0) == 0) return absl::OkStatus();
    return absl::InternalError(
        absl::StrCat("rank ", rank, " should have left with code 0: ",
                     code.ok() ? absl::StrCat("it was ", **code)
                               : std::string(code.status().message())));
  }

  absl::Status ExpectGone(absl::Time begin) {
    const absl::Time end = begin + kNoticedWithin + kGoneWithin;
    for (int rank = 0; rank < round_.size; ++rank) {
      if (!ranks_.is_started(rank)) continue;
      if (rank == round_.victim && round_.fault == GroupFault::kStop) continue;
      // It was asked to leave before it served, and does; the others fail.
      const bool was_asked =
          rank == round_.victim && round_.fault == GroupFault::kTerminate;
      LOCKSTEP_RETURN_IF_ERROR(was_asked
                                   ? ExpectGoodExit(rank, end - absl::Now())
                                   : ExpectBadExit(rank, end - absl::Now()));
    }
    if (round_.fault != GroupFault::kStop) return absl::OkStatus();
    ranks_.Signal(round_.victim, SIGCONT);
    return ExpectBadExit(round_.victim, kNoticedWithin + kGoneWithin);
  }

  absl::Status ExpectBadExit(int rank, absl::Duration timeout) {
    const auto code = ranks_.WaitForExit(rank, timeout);
    if (code.ok() && code->value_or(1) != 0) return absl::OkStatus();
    return absl::InternalError(absl::StrCat(
        "rank ", rank, " should have left with a code other than 0: ",
        code.ok() ? "it was 0" : std::string(code.status().message())));
  }

  absl::Status ExpectEnds() {
    for (const auto& client : clients_) {
      if (!client->WaitForEnd(kGoneWithin)) {
        return absl::InternalError("a client's call does not end.");
      }
      LOCKSTEP_RETURN_IF_ERROR(client->CheckEnd());
      const int named = client->failed_rank().value_or(round_.victim);
      if (named == round_.victim) continue;
      return absl::InternalError(
          absl::StrCat("a client is told that rank ", named, " failed."));
    }
    return absl::OkStatus();
  }

  const Round round_;
  std::mt19937_64 random_;
  const Leftovers leftovers_;  // before ranks_
  Ranks ranks_;
  std::unique_ptr<LinkProxy> proxy_;
  std::vector<std::unique_ptr<Client>> clients_;
};

}  // namespace

absl::Status PlayRound(const Round& round, const Arena& arena) {
  Play play(round, arena);
  const absl::Status status = play.Run();
  if (status.ok()) return status;
  return absl::Status(status.code(),
                      absl::StrCat(status.message(), "\n", play.Output()));
}

bool CanFillShm() {
  return std::system(
             "unshare --mount mount -t tmpfs tmpfs /dev/shm 2> /dev/null") == 0;
}

}  // namespace lockstep::testing
