#include "worker/group/rendezvous_follower.h"

#include <absl/strings/str_cat.h>
#include <glog/logging.h>

#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <chrono>
#include <memory>
#include <optional>
#include <utility>

#include "common/status_macros.h"
#include "worker/group/address.h"
#include "worker/group/frame_codec.h"
#include "worker/group/link.h"

namespace lockstep {
namespace {

using boost::asio::ip::tcp;
using boost::system::error_code;

constexpr std::chrono::milliseconds kRetryInterval(100);
constexpr std::chrono::milliseconds kCheckInterval(50);

// One attempt after another, until the leader has answered, or has left after
// it was told who calls.
class Joining {
 public:
  Joining(boost::asio::io_context& context, const std::string& leader,
          const v1::Hello& own)
      : context_(context), leader_(leader), socket_(context), retry_(context) {
    AppendSized(own.SerializeAsString(), &hello_);
  }

  void Connect();

  // Set once the leader has answered.
  const std::optional<v1::HelloReply>& reply() const { return reply_; }
  bool has_ended() const { return reply_.has_value() || is_lost_; }
  tcp::socket& socket() { return socket_; }
  std::string& received() { return received_; }  // after the reply
  // What it waits for, for messages.
  const std::string& state() const { return state_; }

 private:
  void Retry(std::string why);
  void SayHello();
  void ReadReply();

  boost::asio::io_context& context_;
  const std::string leader_;  // host:port
  tcp::socket socket_;
  boost::asio::steady_timer retry_;
  std::string hello_;
  std::array<char, 4096> buffer_;
  std::string received_;
  std::string state_ = "nobody answers.";
  bool is_lost_ = false;
  std::optional<v1::HelloReply> reply_;
};

// The name is looked up each time: it may not be known yet, or be another
// host's by now.
void Joining::Connect() {
  const auto leader = Resolve(context_, leader_, "leader_address");
  if (!leader.ok()) return Retry(std::string(leader.status().message()));
  socket_.async_connect(*leader, [this](const error_code& error) {
    if (error) return Retry("nobody answers.");
    state_ = "the leader waits for other ranks, or hangs.";
    ConfigureSocket(socket_);
    SayHello();
  });
}

void Joining::Retry(std::string why) {
  error_code ignored;
  socket_.close(ignored);
  state_ = std::move(why);
  received_.clear();
  retry_.expires_after(kRetryInterval);
  retry_.async_wait([this](const error_code& error) {
    if (!error) Connect();
  });
}

void Joining::SayHello() {
  boost::asio::async_write(socket_, boost::asio::buffer(hello_),
                           [this](const error_code& error, size_t) {
                             if (error) return Retry("nobody answers.");
                             ReadReply();
                           });
}

void Joining::ReadReply() {
  socket_.async_read_some(boost::asio::buffer(buffer_),
                          [this](const error_code& error, size_t size) {
                            received_.append(buffer_.data(), size);
                            auto reply = TakeHelloReply(&received_);
                            if (!error && reply.ok() && !reply->has_value())
                              return ReadReply();
                            is_lost_ = error || !reply.ok();
                            if (!is_lost_) reply_ = **std::move(reply);
                          });
}

absl::Status RunUntilReply(boost::asio::io_context& context, Joining& joining,
                           const std::string& address,
                           const JoinOptions& options) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point begin = Clock::now();
  absl::Duration next_report = options.report_every;
  while (!joining.has_ended()) {
    context.restart();
    context.run_one_for(kCheckInterval);
    if (options.check) LOCKSTEP_RETURN_IF_ERROR(options.check());
    const absl::Duration waited = absl::FromChrono(Clock::now() - begin);
    if (waited >= options.timeout && !joining.has_ended()) {
      return absl::DeadlineExceededError(absl::StrCat(
          "could not join the group at --leader_address ", address,
          " within --group_timeout of ", absl::FormatDuration(options.timeout),
          ": ", joining.state()));
    }
    if (waited >= next_report) {
      LOG(INFO) << "joining the group at " << address << ": "
                << joining.state();
      next_report = waited + options.report_every;
    }
  }
  if (joining.reply().has_value()) return absl::OkStatus();
  return absl::UnavailableError(
      absl::StrCat("the leader at --leader_address ", address,
                   " left before the group had formed."));
}

}  // namespace

absl::StatusOr<Membership> JoinGroup(const std::string& address,
                                     const v1::Hello& own,
                                     const JoinOptions& options) {
  Membership membership;
  membership.io = std::make_unique<IoThread>();
  boost::asio::io_context& context = membership.io->context();
  LOCKSTEP_RETURN_IF_ERROR(ParseHostPort(address, "leader_address").status());
  Joining joining(context, address, own);
  joining.Connect();
  LOCKSTEP_RETURN_IF_ERROR(RunUntilReply(context, joining, address, options));
  const v1::HelloReply& reply = *joining.reply();
  if (!reply.has_welcome()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the leader at ", address, " refused: ", reply.refusal().reason()));
  }
  membership.epoch = reply.welcome().epoch();
  membership.num_pages = reply.welcome().num_pages();
  membership.collective_address = reply.welcome().collective_address();
  membership.links.push_back(std::move(joining.socket()));
  membership.received = std::move(joining.received());
  return membership;
}

}  // namespace lockstep
