#include "worker/group/peer_watch.h"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace lockstep {
namespace {

// With heartbeats that do not come at the same moment, of a rank that runs one
// has arrived within two of one's own; the third is for a busy machine. After
// as many, every rank that runs has told where it hangs.
constexpr int64_t kSettledBeats = 3;

// Of which the leader remembers where it was: with the default interval the
// longest timeout is three days.
constexpr double kMostBeats = 1 << 19;
constexpr double kLeastBeats = kSettledBeats;

// A follower that can not tell leaves the decision to the leader for so long.
constexpr int64_t kLeadersBeats = 10;

std::string Name(int rank) {
  return rank == 0 ? "the leader" : absl::StrCat("rank ", rank);
}

}  // namespace

PeerWatch::PeerWatch(int own_rank, const std::vector<int>& peers,
                     const Options& options)
    : own_rank_(own_rank),
      options_(options),
      timeout_beats_(std::clamp(
          std::ceil(absl::FDivDuration(options.timeout, options.interval)),
          kLeastBeats, kMostBeats)) {
  for (const int rank : peers) peers_.push_back({.rank = rank});
}

PeerWatch::Peer* PeerWatch::Find(int rank) {
  const auto found =
      std::find_if(peers_.begin(), peers_.end(),
                   [&](const Peer& peer) { return peer.rank == rank; });
  return found == peers_.end() ? nullptr : &*found;
}

void PeerWatch::Heard(int rank) {
  if (Peer* peer = Find(rank)) peer->silent_beats = 0;
}

void PeerWatch::Heard(int rank, const v1::Heartbeat& heartbeat) {
  if (Peer* peer = Find(rank)) {
    peer->silent_beats = 0;
    peer->last = heartbeat;
    peer->beats_since_last = 0;
  }
}

void PeerWatch::Forget(int rank) {
  peers_.erase(
      std::remove_if(peers_.begin(), peers_.end(),
                     [&](const Peer& peer) { return peer.rank == rank; }),
      peers_.end());
}

std::optional<GroupFailure::Cause> PeerWatch::Beat(const v1::Heartbeat& own) {
  for (Peer& peer : peers_) {
    ++peer.silent_beats;
    ++peer.beats_since_last;
  }
  if (auto cause = FindSilent(own, timeout_beats_)) return cause;
  if (auto cause = FindAwaited(own)) return cause;
  return is_leader() ? FindLagging(own) : std::nullopt;
}

std::optional<GroupFailure::Cause> PeerWatch::FindSilent(
    const v1::Heartbeat& own, int64_t max_silent_beats) const {
  const auto most = std::max_element(peers_.begin(), peers_.end(),
                                     [](const Peer& a, const Peer& b) {
                                       return a.silent_beats < b.silent_beats;
                                     });
  if (most == peers_.end() || most->silent_beats <= max_silent_beats) {
    return std::nullopt;
  }
  return GroupFailure::Cause{
      .rank = most->rank,
      .kind = v1::SILENT,
      .reason = absl::StrCat(
          "it has been silent for ",
          absl::FormatDuration((most->silent_beats - 1) * options_.interval),
          "; its last finished step is ", FinishedStep(most->last),
          ", that of ", Name(own_rank_), " ", FinishedStep(own), ".")};
}

// Looks at what the leader had finished a timeout ago, as what a follower says
// of itself is up to a heartbeat old.
std::optional<GroupFailure::Cause> PeerWatch::FindLagging(
    const v1::Heartbeat& own) {
  finished_.push_back(FinishedStep(own));
  if (static_cast<int64_t>(finished_.size()) <= timeout_beats_) {
    return std::nullopt;
  }
  const uint64_t due = finished_.front();
  finished_.pop_front();
  for (const Peer& peer : peers_) {
    const bool runs = peer.silent_beats <= kSettledBeats;
    if (!runs || FinishedStep(peer.last) >= due) continue;
    return GroupFailure::Cause{
        .rank = peer.rank,
        .kind = v1::TOO_FAR_BEHIND,
        .reason = absl::StrCat(
            "its last finished step is ", FinishedStep(peer.last),
            "; the leader finished step ", due, " more than ",
            absl::FormatDuration(timeout_beats_ * options_.interval), " ago.")};
  }
  return std::nullopt;
}

std::optional<std::pair<int, uint64_t>> PeerWatch::FindOverdue(
    const v1::Heartbeat& own) const {
  const auto is_overdue = [](const v1::Heartbeat& heartbeat) {
    return heartbeat.overdue_step() > FinishedStep(heartbeat);
  };
  if (is_overdue(own)) return std::make_pair(own_rank_, own.overdue_step());
  for (const Peer& peer : peers_) {
    if (!is_overdue(peer.last)) continue;
    return std::make_pair(peer.rank, peer.last.overdue_step());
  }
  return std::nullopt;
}

std::optional<GroupFailure::Cause> PeerWatch::FindAwaited(
    const v1::Heartbeat& own) {
  const auto overdue = FindOverdue(own);
  overdue_beats_ = overdue.has_value() ? overdue_beats_ + 1 : 0;
  if (overdue_beats_ <= kSettledBeats) return std::nullopt;
  if (auto cause = FindSilent(own, kSettledBeats)) return cause;

  int least_rank = own_rank_;
  v1::Heartbeat least = own;
  bool all_are_equal = true;
  for (const Peer& peer : peers_) {
    // Bytes of the leader come, but no heartbeat can be read from them.
    const bool is_stale = !is_leader() && peer.beats_since_last > kSettledBeats;
    if (is_stale) {
      all_are_equal = false;
    } else if (IsBehind(peer.last, least)) {
      least_rank = peer.rank;
      least = peer.last;
      all_are_equal = false;
    } else if (IsBehind(least, peer.last)) {
      all_are_equal = false;
    }
  }
  const auto [reporter, step] = *overdue;
  if (!all_are_equal) {
    return GroupFailure::Cause{
        .rank = least_rank,
        .kind = v1::STEP_OVERDUE,
        .reason = absl::StrCat("step ", step,
                               " exceeds its time limit, and this rank is the "
                               "one that the others wait for: it is in step ",
                               least.step(), " at ",
                               v1::StepStage_Name(least.stage()), " after ",
                               least.collectives(), " collectives.")};
  }
  if (!is_leader() && overdue_beats_ <= kLeadersBeats) return std::nullopt;
  return GroupFailure::Cause{
      .rank = reporter,
      .kind = v1::STEP_OVERDUE,
      .reason = absl::StrCat(
          "step ", step,
          " exceeds its time limit, first on this rank; all ranks hang in the "
          "same place, after ",
          own.collectives(), " collectives.")};
}

}  // namespace lockstep
