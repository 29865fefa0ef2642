#include "worker/group/follower_source.h"

#include <absl/strings/str_cat.h>
#include <glog/logging.h>

#include <boost/asio/post.hpp>
#include <utility>
#include <variant>

namespace lockstep {
namespace {

constexpr absl::Duration kLastWordsTimeout = absl::Seconds(1);
constexpr int kLeader = 0;

size_t NumBytes(const Frame& frame) {
  size_t bytes = sizeof(Frame);
  for (const std::string& message : frame.messages) {
    bytes += sizeof(message) + message.size();
  }
  return bytes;
}

}  // namespace

FollowerSource::FollowerSource(int rank, Membership membership,
                               GroupFailure* failure, const Options& options)
    : rank_(rank),
      options_(options),
      failure_(failure),
      io_(std::move(membership.io)),
      link_(std::make_unique<Link>(
          std::move(membership.links.front()), Link::Options{},
          [this](absl::string_view bytes) { OnBytes(bytes); },
          [this](const absl::Status& why) { OnClosed(why); })),
      heartbeats_({kLeader}),
      reader_(membership.epoch),
      watch_(rank, {kLeader}, options.watch),
      heartbeat_(io_->context(), options.watch.interval, [this] { Beat(); }) {
  boost::asio::post(
      io_->context(),
      [this, received = std::move(membership.received)] { OnBytes(received); });
  link_->Start();
  heartbeat_.Start();
  io_->Start();
}

FollowerSource::~FollowerSource() {
  link_->WaitUntilSent(kLastWordsTimeout);
  io_->Stop();
}

void FollowerSource::TellLoaded() {
  progress_.SetLoaded();
  v1::FollowerReport report;
  *report.mutable_heartbeat() = progress_.Read();
  SendReport(report);
}

absl::Status FollowerSource::Next(bool /*idle*/, Frame* frame) {
  absl::MutexLock lock(&mutex_);
  mutex_.Await(absl::Condition(this, &FollowerSource::HasFrameOrClosed));
  if (closed_) return failure_->status();
  *frame = std::move(frames_.front());
  frames_.pop_front();
  unread_bytes_ -= NumBytes(*frame);
  step_ = frame->step;
  return absl::OkStatus();
}

absl::Status FollowerSource::Agree(const Digest& digest) {
  absl::MutexLock lock(&mutex_);
  mutex_.Await(absl::Condition(this, &FollowerSource::HasDigestOrClosed));
  if (closed_) return failure_->status();
  const Digest expected = digests_.front();
  digests_.pop_front();
  if (expected == digest) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(
      "step ", step_, " differs from the leader's: expected digest ",
      ToHex(expected), ", got ", ToHex(digest), " on rank ", rank_, "."));
}

void FollowerSource::Leave() {
  {
    absl::MutexLock lock(&mutex_);
    left_ = true;
  }
  v1::FollowerReport report;
  report.mutable_leave();
  SendReport(report);
}

void FollowerSource::TellFailure(const GroupFailure::Cause& cause) {
  {
    absl::MutexLock lock(&mutex_);
    closed_ = true;
  }
  if (told_by_leader_) return;
  v1::FollowerReport report;
  report.mutable_failure()->set_rank(cause.rank);
  report.mutable_failure()->set_kind(cause.kind);
  report.mutable_failure()->set_reason(cause.reason);
  SendReport(report);
}

void FollowerSource::SendReport(const v1::FollowerReport& report) {
  std::string bytes;
  AppendSized(report.SerializeAsString(), &bytes);
  const absl::Status sent = link_->Send(bytes);
  if (!sent.ok()) VLOG(1) << "the leader gets no report: " << sent.message();
}

void FollowerSource::Beat() {
  {
    absl::MutexLock lock(&mutex_);
    if (left_ || closed_) return heartbeat_.Stop();
  }
  v1::FollowerReport report;
  *report.mutable_heartbeat() = progress_.Read();
  SendReport(report);
  if (auto cause = watch_.Beat(report.heartbeat())) {
    failure_->Report(*std::move(cause));
  }
}

// Of a group that has failed nobody takes what is read.
void FollowerSource::OnBytes(absl::string_view bytes) {
  watch_.Heard(kLeader);
  {
    absl::MutexLock lock(&mutex_);
    if (closed_) return;
  }
  reader_.Append(bytes);
  while (true) {
    auto event = reader_.Next();
    if (!event.ok()) {
      failure_->Report({.rank = rank_,
                        .kind = v1::PROTOCOL_VIOLATED,
                        .reason = absl::StrCat("it read what no leader sends: ",
                                               event.status().message())});
      return;
    }
    if (!event->has_value()) return;
    OnEvent(**std::move(event));
  }
}

void FollowerSource::OnEvent(FrameReader::Event event) {
  if (auto* frame = std::get_if<Frame>(&event)) {
    Push(std::move(*frame));
  } else if (const auto* digest = std::get_if<Digest>(&event)) {
    absl::MutexLock lock(&mutex_);
    digests_.push_back(*digest);
  } else if (const auto* heartbeat = std::get_if<v1::Heartbeat>(&event)) {
    heartbeats_.Count(kLeader);
    watch_.Heard(kLeader, *heartbeat);
  } else {
    const auto& failure = std::get<v1::FirstFailure>(event);
    told_by_leader_ = true;
    failure_->Report({.rank = static_cast<int>(failure.rank()),
                      .kind = failure.kind(),
                      .reason = failure.reason()});
  }
}

void FollowerSource::Push(Frame frame) {
  std::string limit;  // that is exceeded
  {
    absl::MutexLock lock(&mutex_);
    unread_bytes_ += NumBytes(frame);
    frames_.push_back(std::move(frame));
    if (unread_bytes_ > options_.max_unread_bytes) {
      limit = absl::StrCat(options_.max_unread_bytes, " bytes");
    } else if (frames_.size() > options_.max_unread_frames) {
      limit = absl::StrCat(options_.max_unread_frames, " steps");
    }
  }
  if (limit.empty()) return;
  failure_->Report({.rank = rank_,
                    .kind = v1::TOO_FAR_BEHIND,
                    .reason = absl::StrCat("it is more than ", limit,
                                           " behind the leader.")});
}

void FollowerSource::OnClosed(const absl::Status& why) {
  {
    absl::MutexLock lock(&mutex_);
    if (left_) return;
  }
  failure_->Report({.rank = kLeader,
                    .kind = v1::CONNECTION_LOST,
                    .reason = absl::StrCat(why.message(), ".")});
}

}  // namespace lockstep
