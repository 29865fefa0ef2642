#include "worker/group/rendezvous_leader.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>
#include <glog/logging.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <cerrno>
#include <chrono>
#include <deque>
#include <map>
#include <utility>
#include <vector>

#include "common/status_macros.h"
#include "worker/group/address.h"
#include "worker/group/frame_codec.h"
#include "worker/group/hello_check.h"
#include "worker/group/link.h"

namespace lockstep {
namespace {

using boost::asio::ip::tcp;
using boost::system::error_code;

// That have not said Hello yet; the longest silent one makes room for the next.
constexpr size_t kMaxCallers = 256;
constexpr std::chrono::milliseconds kCheckInterval(50);

// The peer has closed the connection, or it broke.
bool HasEnded(tcp::socket& socket) {
  char byte;
  const ssize_t size =
      recv(socket.native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return size == 0 || (size < 0 && errno != EAGAIN && errno != EWOULDBLOCK);
}

bool SendReply(tcp::socket& socket, const v1::HelloReply& reply) {
  std::string bytes;
  AppendSized(reply.SerializeAsString(), &bytes);
  error_code error;
  boost::asio::write(socket, boost::asio::buffer(bytes), error);
  return !error;
}

}  // namespace

// One wait for the followers, and from then on a refusal of whoever else comes.
// Connections are served side by side, so that one that says nothing, or
// nonsense, holds up nobody.
class RendezvousLeader::Gathering {
 public:
  Gathering(boost::asio::io_context& context, tcp::acceptor acceptor,
            const v1::Hello& own, const Options& options)
      : context_(context),
        acceptor_(std::move(acceptor)),
        own_(own),
        options_(options),
        accept_again_(context) {}

  absl::Status WaitForAll();
  // Of all that have come; whoever comes later is refused, on the thread that
  // runs the context. The object is to live as long as that.
  absl::StatusOr<Membership> Welcome();

 private:
  struct Caller {
    explicit Caller(tcp::socket socket) : socket(std::move(socket)) {}

    tcp::socket socket;
    std::array<char, 4096> buffer;
    std::string received;
  };
  using CallerPtr = std::shared_ptr<Caller>;

  void Accept();
  void Hear(tcp::socket socket);
  void ReadHello(CallerPtr caller);
  void OnHello(Caller& caller, const v1::Hello& hello);
  // Why a Hello that fits can not join; empty where it can.
  std::string WhyTaken(const v1::Hello& hello);
  void Refuse(Caller& caller, absl::string_view reason);
  void CloseAll();
  // What a rank joins the others' collectives by.
  v1::CollectiveAddress CollectiveAddressFor(int rank) const;
  // Be it that some have left again: then the group is gone before it forms.
  bool AllHaveJoined() const {
    return joined_.size() + 1 == own_.tensor_parallel_size();
  }
  // "2, 3": that have not joined, or have left again.
  std::string MissingRanks();

  boost::asio::io_context& context_;
  tcp::acceptor acceptor_;
  const v1::Hello own_;
  const Options options_;
  boost::asio::steady_timer accept_again_;
  std::deque<CallerPtr> callers_;      // in order of arrival
  std::map<int, tcp::socket> joined_;  // by rank
  std::map<int, v1::Hello> hellos_;
  std::string last_refusal_;
  bool has_formed_ = false;
};

absl::Status RendezvousLeader::Gathering::WaitForAll() {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point begin = Clock::now();
  absl::Duration next_report = options_.report_every;
  absl::Status status;
  Accept();
  while (status.ok() && !AllHaveJoined()) {
    context_.restart();
    context_.run_for(kCheckInterval);
    if (options_.check) status = options_.check();
    const absl::Duration waited = absl::FromChrono(Clock::now() - begin);
    if (AllHaveJoined()) break;
    if (status.ok() && waited >= options_.timeout) {
      status = absl::DeadlineExceededError(absl::StrCat(
          "rank ", MissingRanks(), " did not join within --group_timeout of ",
          absl::FormatDuration(options_.timeout), ".",
          last_refusal_.empty() ? "" : " The last one refused: ",
          last_refusal_));
    } else if (waited >= next_report) {
      LOG(INFO) << "waiting for rank " << MissingRanks() << " at port "
                << acceptor_.local_endpoint().port() << " since "
                << absl::FormatDuration(absl::Floor(waited, absl::Seconds(1)));
      next_report = waited + options_.report_every;
    }
  }
  // Nobody else is to come to a group of one.
  if (!status.ok() || own_.tensor_parallel_size() == 1) CloseAll();
  return status;
}

absl::StatusOr<Membership> RendezvousLeader::Gathering::Welcome() {
  Membership membership;
  membership.epoch = options_.epoch;
  uint32_t num_pages = own_.num_pages();
  for (const auto& [rank, hello] : hellos_) {
    num_pages = std::min(num_pages, hello.num_pages());
  }
  membership.num_pages = num_pages;
  membership.collective_address = CollectiveAddressFor(/*rank=*/0);
  v1::HelloReply reply;
  reply.mutable_welcome()->set_epoch(membership.epoch);
  reply.mutable_welcome()->set_num_pages(membership.num_pages);
  for (auto& [rank, socket] : joined_) {
    *reply.mutable_welcome()->mutable_collective_address() =
        CollectiveAddressFor(rank);
    if (!SendReply(socket, reply)) {
      CloseAll();
      return absl::UnavailableError(absl::StrCat(
          NameOf(hellos_[rank]), " left before the group had formed."));
    }
    membership.links.push_back(std::move(socket));
  }
  has_formed_ = true;
  return membership;
}

v1::CollectiveAddress RendezvousLeader::Gathering::CollectiveAddressFor(
    int rank) const {
  v1::CollectiveAddress address;
  if (own_.collective_address().has_shared_memory()) {
    *address.mutable_shared_memory() =
        own_.collective_address().shared_memory();
  }
  address.set_nccl_id(own_.collective_address().nccl_id());
  // CheckHello has seen that all have as many.
  if (own_.collective_address().gloo_size() == 0) return address;
  address.add_gloo(own_.collective_address().gloo(rank));
  for (const auto& [other, hello] : hellos_) {
    address.add_gloo(hello.collective_address().gloo(rank));
  }
  return address;
}

// Where no connection can be had, such as with no file descriptor left, the
// next attempt comes a moment later.
void RendezvousLeader::Gathering::Accept() {
  acceptor_.async_accept([this](const error_code& error, tcp::socket socket) {
    if (!acceptor_.is_open()) return;
    if (!error) {
      Hear(std::move(socket));
      return Accept();
    }
    accept_again_.expires_after(kCheckInterval);
    accept_again_.async_wait([this](const error_code& cancelled) {
      if (!cancelled) Accept();
    });
  });
}

void RendezvousLeader::Gathering::Hear(tcp::socket socket) {
  if (callers_.size() == kMaxCallers) {
    error_code ignored;
    callers_.front()->socket.close(ignored);
    callers_.pop_front();
  }
  callers_.push_back(std::make_shared<Caller>(std::move(socket)));
  ReadHello(callers_.back());
}

void RendezvousLeader::Gathering::ReadHello(CallerPtr caller) {
  Caller& reader = *caller;
  reader.socket.async_read_some(
      boost::asio::buffer(reader.buffer),
      [this, caller](const error_code& error, size_t size) {
        caller->received.append(caller->buffer.data(), size);
        const auto hello = TakeHello(&caller->received);
        if (!error && hello.ok() && !hello->has_value()) {
          return ReadHello(caller);
        }
        if (!error && hello.ok()) OnHello(*caller, **hello);
        std::erase(callers_, caller);
      });
}

void RendezvousLeader::Gathering::OnHello(Caller& caller,
                                          const v1::Hello& hello) {
  const absl::Status fits = CheckHello(own_, hello);
  if (!fits.ok()) return Refuse(caller, fits.message());
  const std::string taken = WhyTaken(hello);
  if (!taken.empty()) return Refuse(caller, taken);
  const int rank = hello.rank();
  ConfigureSocket(caller.socket);
  joined_.insert_or_assign(rank, std::move(caller.socket));
  LOG(INFO) << "rank " << rank << " has joined, as process "
            << hello.process_id() << " on " << hello.host();
  hellos_[rank] = hello;
}

std::string RendezvousLeader::Gathering::WhyTaken(const v1::Hello& hello) {
  const auto before = hellos_.find(hello.rank());
  if (before == hellos_.end()) return "";
  const std::string joined = absl::StrCat(
      "rank ", hello.rank(), " has joined already, as process ",
      before->second.process_id(), before->second.host().empty() ? "" : " on ",
      before->second.host());
  if (has_formed_) {
    return absl::StrCat("the group has formed, and ", joined,
                        "; a group starts again as a whole.");
  }
  return HasEnded(joined_.at(hello.rank())) ? "" : absl::StrCat(joined, ".");
}

void RendezvousLeader::Gathering::Refuse(Caller& caller,
                                         absl::string_view reason) {
  LOG(WARNING) << "refused to join: " << reason;
  last_refusal_ = std::string(reason);
  v1::HelloReply reply;
  reply.mutable_refusal()->set_reason(last_refusal_);
  SendReply(caller.socket, reply);
}

// Runs every handler that refers to this to its end.
void RendezvousLeader::Gathering::CloseAll() {
  error_code ignored;
  acceptor_.close(ignored);
  accept_again_.cancel();
  for (const CallerPtr& caller : callers_) caller->socket.close(ignored);
  context_.restart();
  context_.run();
}

std::string RendezvousLeader::Gathering::MissingRanks() {
  std::vector<int> missing;
  for (int rank = 1; rank < own_.tensor_parallel_size(); ++rank) {
    const auto joined = joined_.find(rank);
    if (joined == joined_.end() || HasEnded(joined->second)) {
      missing.push_back(rank);
    }
  }
  return absl::StrJoin(missing, ", ");
}

RendezvousLeader::RendezvousLeader()
    : io_(std::make_unique<IoThread>()), acceptor_(io_->context()) {}

absl::StatusOr<std::unique_ptr<RendezvousLeader>> RendezvousLeader::Listen(
    const std::string& address) {
  std::unique_ptr<RendezvousLeader> result(new RendezvousLeader);
  LOCKSTEP_ASSIGN_OR_RETURN(
      const tcp::endpoint endpoint,
      Resolve(result->io_->context(), address, "leader_address"));
  tcp::acceptor& acceptor = result->acceptor_;
  error_code error;
  acceptor.open(endpoint.protocol(), error);
  if (!error) acceptor.set_option(tcp::acceptor::reuse_address(true), error);
  if (!error) acceptor.bind(endpoint, error);
  if (!error) acceptor.listen(tcp::acceptor::max_listen_connections, error);
  if (!error) result->port_ = acceptor.local_endpoint(error).port();
  if (error) {
    return absl::UnavailableError(absl::StrCat(
        "the leader cannot listen on ", address, " (", error.message(),
        "); choose another with --leader_address."));
  }
  return result;
}

absl::StatusOr<Membership> RendezvousLeader::Gather(const v1::Hello& own,
                                                    const Options& options) {
  auto gathering = std::make_shared<Gathering>(
      io_->context(), std::move(acceptor_), own, options);
  LOCKSTEP_RETURN_IF_ERROR(gathering->WaitForAll());
  LOCKSTEP_ASSIGN_OR_RETURN(Membership membership, gathering->Welcome());
  io_->Keep(std::move(gathering));
  membership.io = std::move(io_);
  return membership;
}

}  // namespace lockstep
