#include "worker/group/leader_source.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>

#include <boost/asio/post.hpp>
#include <optional>
#include <utility>

#include "common/status_macros.h"
#include "worker/group/frame_codec.h"

namespace lockstep {
namespace {

constexpr size_t kMaxReportBytes = 16 << 10;
constexpr absl::Duration kLastWordsTimeout = absl::Milliseconds(500);

}  // namespace

LeaderSource::LeaderSource(Membership membership, RequestInbox* inbox,
                           GroupFailure* failure, const Link::Options& options)
    : epoch_(membership.epoch),
      inbox_(inbox),
      failure_(failure),
      io_(std::move(membership.io)) {
  for (auto& socket : membership.links) {
    Follower& follower = *followers_.emplace_back(std::make_unique<Follower>());
    follower.rank = followers_.size();
    follower.link = std::make_unique<Link>(
        std::move(socket), options,
        [this, &follower](absl::string_view bytes) {
          OnBytes(follower, bytes);
        },
        [this, &follower](const absl::Status& why) {
          OnClosed(follower, why);
        });
  }
  if (followers_.empty()) return;
  for (const auto& follower : followers_) follower->link->Start();
  io_->Start();
}

LeaderSource::~LeaderSource() {
  for (const auto& follower : followers_) {
    follower->link->WaitUntilSent(kLastWordsTimeout);
  }
  if (io_ != nullptr) io_->Stop();
}

absl::Status LeaderSource::Next(bool idle, Frame* frame) {
  frame->messages.clear();
  LOCKSTEP_RETURN_IF_ERROR(
      inbox_->Drain(idle, kMaxMessagesOfFrame, &frame->messages));
  frame->step = ++step_;
  if (told_failure_.load(std::memory_order_acquire)) return failure_->status();
  if (followers_.empty()) return absl::OkStatus();
  absl::MutexLock lock(&send_mutex_);
  if (told_failure_) return failure_->status();
  bytes_.clear();
  AppendFrame(epoch_, *frame, &bytes_);
  owes_digest_ = true;
  SendToAll();
  return absl::OkStatus();
}

absl::Status LeaderSource::Agree(const Digest& digest) {
  if (told_failure_.load(std::memory_order_acquire)) return failure_->status();
  if (followers_.empty()) return absl::OkStatus();
  absl::MutexLock lock(&send_mutex_);
  if (told_failure_) return failure_->status();
  bytes_.clear();
  AppendDigest(digest, &bytes_);
  owes_digest_ = false;
  SendToAll();
  return absl::OkStatus();
}

// A follower that can not take the bytes is reported by its I/O thread, which
// must not wait for send_mutex_: its report tells the others, under that lock.
void LeaderSource::SendToAll() {
  for (const auto& follower : followers_) {
    const absl::Status sent = follower->link->Send(bytes_);
    if (!absl::IsResourceExhausted(sent)) continue;
    boost::asio::post(io_->context(), [this, rank = follower->rank, sent] {
      failure_->Report({.rank = rank,
                        .kind = v1::TOO_FAR_BEHIND,
                        .reason = std::string(sent.message())});
    });
  }
}

void LeaderSource::TellFailure(const GroupFailure::Cause& cause) {
  {
    absl::MutexLock lock(&left_mutex_);
    has_failed_ = true;
  }
  v1::FirstFailure failure;
  failure.set_rank(cause.rank);
  failure.set_kind(cause.kind);
  failure.set_reason(cause.reason);

  absl::MutexLock lock(&send_mutex_);
  if (told_failure_.exchange(true)) return;
  bytes_.clear();
  if (owes_digest_) AppendDigest(kNoDigest, &bytes_);
  AppendFailure(epoch_, failure, &bytes_);
  SendToAll();
}

absl::Status LeaderSource::WaitForFollowers(absl::Duration timeout) {
  absl::MutexLock lock(&left_mutex_);
  std::vector<int> missing;
  const auto have_ended = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(left_mutex_) {
    missing.clear();
    for (const auto& follower : followers_) {
      if (!left_.contains(follower->rank)) missing.push_back(follower->rank);
    }
    return missing.empty() || has_failed_;
  };
  if (left_mutex_.AwaitWithTimeout(absl::Condition(&have_ended), timeout)) {
    return failure_->status();
  }
  return absl::DeadlineExceededError(absl::StrCat(
      "rank ", absl::StrJoin(missing, ", "), " did not leave within ",
      absl::FormatDuration(timeout), "."));
}

void LeaderSource::OnBytes(Follower& follower, absl::string_view bytes) {
  follower.received.append(bytes.data(), bytes.size());
  const auto taken = TakeSized(kMaxReportBytes, &follower.received);
  v1::FollowerReport report;
  if (!taken.ok() || (taken->has_value() && !report.ParseFromString(**taken))) {
    failure_->Report({.rank = follower.rank,
                      .kind = v1::PROTOCOL_VIOLATED,
                      .reason = "it sent what is no report."});
    return;
  }
  if (!taken->has_value()) return;
  if (report.has_failure()) {
    failure_->Report({.rank = static_cast<int>(report.failure().rank()),
                      .kind = report.failure().kind(),
                      .reason = report.failure().reason()});
    return;
  }
  absl::MutexLock lock(&left_mutex_);
  left_.insert(follower.rank);
}

void LeaderSource::OnClosed(const Follower& follower, const absl::Status& why) {
  {
    absl::MutexLock lock(&left_mutex_);
    if (left_.contains(follower.rank)) return;
  }
  failure_->Report({.rank = follower.rank,
                    .kind = v1::CONNECTION_LOST,
                    .reason = absl::StrCat(why.message(), ".")});
}

}  // namespace lockstep
