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
      reader_(membership.epoch) {
  boost::asio::post(
      io_->context(),
      [this, received = std::move(membership.received)] { OnBytes(received); });
  link_->Start();
  io_->Start();
}

FollowerSource::~FollowerSource() {
  link_->WaitUntilSent(kLastWordsTimeout);
  io_->Stop();
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
  SendReport(&report);
}

void FollowerSource::TellFailure(const GroupFailure::Cause& cause) {
  {
    absl::MutexLock lock(&mutex_);
    closed_ = true;
  }
  if (cause.rank != rank_) return;
  v1::FollowerReport report;
  report.mutable_failure()->set_rank(cause.rank);
  report.mutable_failure()->set_kind(cause.kind);
  report.mutable_failure()->set_reason(cause.reason);
  SendReport(&report);
}

void FollowerSource::SendReport(v1::FollowerReport* report) {
  {
    absl::MutexLock lock(&mutex_);
    report->set_step(step_);
  }
  std::string bytes;
  AppendSized(report->SerializeAsString(), &bytes);
  const absl::Status sent = link_->Send(bytes);
  if (!sent.ok()) VLOG(1) << "the leader gets no report: " << sent.message();
}

void FollowerSource::OnBytes(absl::string_view bytes) {
  reader_.Append(bytes);
  while (true) {
    auto event = reader_.Next();
    if (!event.ok()) {
      failure_->Report({.rank = kLeader,
                        .kind = v1::PROTOCOL_VIOLATED,
                        .reason = std::string(event.status().message())});
      return;
    }
    if (!event->has_value()) return;
    if (const auto* failure = std::get_if<v1::FirstFailure>(&**event)) {
      failure_->Report({.rank = static_cast<int>(failure->rank()),
                        .kind = failure->kind(),
                        .reason = failure->reason()});
      return;
    }
    if (!Push(**std::move(event))) {
      failure_->Report(
          {.rank = rank_,
           .kind = v1::TOO_FAR_BEHIND,
           .reason = absl::StrCat("it is more than ", options_.max_unread_bytes,
                                  " bytes behind the leader.")});
      return;
    }
  }
}

bool FollowerSource::Push(FrameReader::Event event) {
  absl::MutexLock lock(&mutex_);
  if (const auto* digest = std::get_if<Digest>(&event)) {
    // A leader that failed before it planned: the failure follows.
    if (*digest != kNoDigest) digests_.push_back(*digest);
  } else {
    Frame& frame = std::get<Frame>(event);
    unread_bytes_ += NumBytes(frame);
    frames_.push_back(std::move(frame));
  }
  return unread_bytes_ <= options_.max_unread_bytes;
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
