#include "worker/collectives/gloo_mesh.h"

#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <gloo/transport/address.h>
#include <gloo/transport/context.h>
#include <gloo/transport/device.h>
#include <gloo/transport/pair.h>
#include <gloo/transport/tcp/device.h>
#include <gloo/transport/unbound_buffer.h>
#include <pthread.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <exception>
#include <utility>

#include "common/status_macros.h"
#include "worker/collectives/blamed_rank.h"

namespace lockstep {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

// Gloo knows no infinite wait.
constexpr milliseconds kNoLimit = std::chrono::hours(24);
// A connection waits this many times its limit.
constexpr int kGlooConnectFactor = 5;
// For what the peers are known to have received, and for the last message.
constexpr milliseconds kSendLimit = std::chrono::seconds(1);

// A thread inherits the name of the one that starts it.
class NameOfNewThreads {
 public:
  explicit NameOfNewThreads(const char* name) {
    pthread_getname_np(pthread_self(), own_.data(), own_.size());
    pthread_setname_np(pthread_self(), name);
  }
  ~NameOfNewThreads() { pthread_setname_np(pthread_self(), own_.data()); }

 private:
  std::array<char, 16> own_;
};

// Gloo's text without the place in its source.
std::string TextOf(const std::exception& error) {
  const absl::string_view text = error.what();
  const size_t place =
      absl::StartsWith(text, "[") ? text.find("] ") : text.npos;
  return std::string(place == text.npos ? text : text.substr(place + 2));
}

milliseconds LimitOf(absl::Duration timeout) {
  return std::min(absl::ToChronoMilliseconds(timeout), kNoLimit);
}

milliseconds LeftOf(milliseconds limit, Clock::time_point begin) {
  const auto passed =
      std::chrono::duration_cast<milliseconds>(Clock::now() - begin);
  return std::max(limit - passed, milliseconds(0));
}

}  // namespace

GlooMesh::GlooMesh(const Options& options)
    : options_(options), peers_(options.size) {}

// The others may still wait for the last message.
GlooMesh::~GlooMesh() {
  if (!status().ok()) return;
  try {
    for (Peer& peer : peers_) AwaitSent(&peer, parity_);
  } catch (const std::exception&) {
    // They have left.
  }
}

absl::StatusOr<std::unique_ptr<GlooMesh>> GlooMesh::Listen(
    const Options& options) {
  std::signal(SIGPIPE, SIG_IGN);
  std::unique_ptr<GlooMesh> mesh(new GlooMesh(options));
  try {
    mesh->Open();
  } catch (const std::exception& error) {
    return absl::UnavailableError(
        absl::StrCat("the collectives cannot listen on ", options.host, ": ",
                     TextOf(error), "."));
  }
  return mesh;
}

void GlooMesh::Open() {
  const NameOfNewThreads name("gloo");
  gloo::transport::tcp::attr attributes;
  attributes.hostname = options_.host;
  device_ = gloo::transport::tcp::CreateDevice(attributes);
  context_ = device_->createContext(options_.rank, options_.size);
  context_->setTimeout(LimitOf(options_.connect_timeout / kGlooConnectFactor));
  for (auto& outgoing : outgoing_) outgoing.resize(options_.outgoing_bytes);
  for (int rank = 0; rank < options_.size; ++rank) {
    if (rank == options_.rank) continue;
    Peer& peer = peers_[rank];
    context_->createPair(rank);
    for (int parity = 0; parity < 2; ++parity) {
      peer.send[parity] = context_->createUnboundBuffer(
          outgoing_[parity].data(), outgoing_[parity].size());
      peer.memory[parity].resize(options_.max_message_bytes);
      peer.receive[parity] = context_->createUnboundBuffer(
          peer.memory[parity].data(), options_.max_message_bytes);
    }
  }
}

std::vector<std::string> GlooMesh::addresses() const {
  std::vector<std::string> addresses(options_.size);
  for (int rank = 0; rank < options_.size; ++rank) {
    if (rank == options_.rank) continue;
    const std::vector<char> bytes = context_->getPair(rank)->address().bytes();
    addresses[rank].assign(bytes.begin(), bytes.end());
  }
  return addresses;
}

absl::Status GlooMesh::Connect(const std::vector<std::string>& of_rank) {
  if (of_rank.size() != options_.size) {
    return absl::InvalidArgumentError(
        absl::StrCat(of_rank.size(), " addresses for the collectives of ",
                     options_.size, " ranks."));
  }
  int rank = 0;
  try {
    for (; rank < options_.size; ++rank) {
      if (rank == options_.rank) continue;
      LOCKSTEP_RETURN_IF_ERROR(status());
      context_->getPair(rank)->connect(
          {of_rank[rank].begin(), of_rank[rank].end()});
      peers_[rank].receive[1 - parity_]->recv(rank, 1 - parity_);
    }
  } catch (const std::exception& error) {
    Fail(BlameRank(rank,
                   absl::UnavailableError(absl::StrCat(
                       "rank ", rank, " can not be reached for collectives: ",
                       TextOf(error), "."))));
  }
  return status();
}

void GlooMesh::AwaitSent(Peer* peer, int parity) {
  if (!std::exchange(peer->is_sending[parity], false)) return;
  peer->send[parity]->waitSend(kSendLimit);
}

// Each buffer is ready to receive one round ahead: a rank that is quicker sends
// at once, and none can be two rounds ahead.
//
// A send is not waited for in its own round: of one that a closed connection
// refused, Gloo tells nothing. Who has sent this round's message has received
// the last round's.
absl::Status GlooMesh::Exchange(const Layout& layout, absl::Duration timeout) {
  LOCKSTEP_RETURN_IF_ERROR(status());
  const milliseconds limit = LimitOf(timeout);
  const Clock::time_point begin = Clock::now();
  const int last = parity_;
  parity_ = 1 - parity_;
  int rank = 0;
  const auto is_peer = [&] { return rank != options_.rank; };
  try {
    for (rank = 0; rank < options_.size; ++rank) {
      if (!is_peer()) continue;
      peers_[rank].receive[last]->recv(rank, last);
      peers_[rank].send[parity_]->send(rank, parity_, rank * layout.stride,
                                       layout.bytes);
      peers_[rank].is_sending[parity_] = true;
    }
    for (rank = 0; rank < options_.size; ++rank) {
      if (!is_peer()) continue;
      if (!peers_[rank].receive[parity_]->waitRecv(LeftOf(limit, begin))) {
        return status();  // aborted
      }
      AwaitSent(&peers_[rank], last);
    }
  } catch (const std::exception& error) {
    if (LeftOf(limit, begin) == milliseconds(0)) {
      Fail(BlameRank(rank, absl::DeadlineExceededError(absl::StrCat(
                               "rank ", rank, " did not come within ",
                               absl::FormatDuration(timeout), "."))));
    } else {
      Fail(BlameRank(rank, absl::UnavailableError(absl::StrCat(
                               "rank ", rank, " left: ", TextOf(error), "."))));
    }
  }
  return status();
}

const char* GlooMesh::incoming(int rank) const {
  return peers_[rank].memory[parity_].data();
}

absl::Status GlooMesh::status() const {
  if (!has_failed_.load(std::memory_order_acquire)) return absl::OkStatus();
  absl::MutexLock lock(&mutex_);
  return failure_;
}

void GlooMesh::Fail(const absl::Status& failure) {
  {
    absl::MutexLock lock(&mutex_);
    if (!failure_.ok()) return;
    failure_ = failure;
    has_failed_.store(true, std::memory_order_release);
  }
  for (Peer& peer : peers_) {
    for (Buffer& buffer : peer.receive) {
      if (buffer != nullptr) buffer->abortWaitRecv();
    }
  }
  CloseConnections();
}

// Wakes a Connect in progress too.
void GlooMesh::CloseConnections() {
  for (int rank = 0; rank < options_.size; ++rank) {
    if (rank == options_.rank || context_ == nullptr) continue;
    try {
      if (auto& pair = context_->getPair(rank)) pair->close();
    } catch (const std::exception&) {
      // It is closed already, or was never open.
    }
  }
}

}  // namespace lockstep
