#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>
#include <absl/types/span.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>

#include "common/digest.h"
#include "proto/group.pb.h"
#include "worker/group/frame_source.h"

namespace lockstep {

// The bytes between the ranks; the format is written down in proto/group.proto.

inline constexpr size_t kMaxHeaderBytes = 16 << 10;
inline constexpr size_t kMaxMessageBytesOfFrame = 64 << 20;
inline constexpr size_t kMaxMessagesOfFrame = 64 << 10;
inline constexpr size_t kMaxBytesOfFrame = 128 << 20;  // of all its messages

// Appends the size, then the bytes.
void AppendSized(absl::string_view bytes, std::string* out);

// Takes the first sized run of bytes off the front of `buffer`; nothing while
// it is incomplete. INVALID_ARGUMENT when its size is above `max_bytes`.
absl::StatusOr<std::optional<std::string>> TakeSized(size_t max_bytes,
                                                     std::string* buffer);

// The messages of the rendezvous, off the front of `buffer` likewise: also
// INVALID_ARGUMENT where the bytes are none. Their texts, as those of reports,
// go to logs and to other ranks: of each is kept what is at most 1 KiB, with
// "..." after what was cut, and "\x0a" in the place of a byte that is not
// printable ASCII.
absl::StatusOr<std::optional<v1::Hello>> TakeHello(std::string* buffer);
absl::StatusOr<std::optional<v1::HelloReply>> TakeHelloReply(
    std::string* buffer);

// A frame up to its digest, which follows on its own once it is known.
void AppendFrame(uint64_t epoch, const Frame& frame, std::string* out);
void AppendDigest(uint64_t epoch, uint64_t step, const Digest& digest,
                  std::string* out);
void AppendHeartbeat(uint64_t epoch, const v1::Heartbeat& heartbeat,
                     std::string* out);
void AppendFailure(uint64_t epoch, const v1::FirstFailure& failure,
                   std::string* out);

// Reads what a leader sends, in pieces as they arrive.
//
//   reader.Append(bytes);
//   LOCKSTEP_ASSIGN_OR_RETURN(auto event, reader.Next());  // until nullopt
//
// An error is final: INVALID_ARGUMENT says after or in which step, and what can
// not be from the leader of this epoch there, or which size is above its limit.
// What comes after it is dropped, so it never holds more than a frame and a
// message. One thread.
class FrameReader {
 public:
  // A frame without its digest, then that digest, and so on; heartbeats between
  // any two, and a failure as the last.
  using Event = std::variant<Frame, Digest, v1::Heartbeat, v1::FirstFailure>;

  explicit FrameReader(uint64_t epoch) : epoch_(epoch) {}

  void Append(absl::string_view bytes) {
    if (error_.ok()) buffer_.append(bytes.data(), bytes.size());
  }

  // The next complete event; nothing until more bytes arrive.
  absl::StatusOr<std::optional<Event>> Next();

  size_t bytes_held() const { return buffer_.size(); }

 private:
  absl::StatusOr<std::optional<Event>> ReadHeader();
  absl::StatusOr<std::optional<Event>> ReadMessages();
  absl::Status BeginFrame(const v1::FrameHeader& header);
  absl::Status CheckHeartbeat(const v1::Heartbeat& heartbeat) const;
  absl::StatusOr<Digest> TakeDigest(const v1::FrameHeader& header);

  // The next sized run of bytes, which stays in buffer_ until the next call of
  // Append or Next.
  absl::StatusOr<std::optional<absl::string_view>> NextSized(size_t max_bytes,
                                                             const char* what);
  absl::string_view rest() const {
    return absl::string_view(buffer_).substr(position_);
  }

  const uint64_t epoch_;
  std::string buffer_;
  size_t position_ = 0;  // of the first byte not yet read
  uint64_t last_step_ = 0;
  bool owes_digest_ = false;    // of last_step_
  std::optional<Frame> frame_;  // being read
  size_t messages_left_ = 0;    // of it
  size_t bytes_left_ = 0;       // of these
  std::string message_digest_;  // announced by it
  absl::Status error_;
};

// The same for what a follower sends: its reports.
class ReportReader {
 public:
  void Append(absl::string_view bytes) {
    if (error_.ok()) buffer_.append(bytes.data(), bytes.size());
  }

  absl::StatusOr<std::optional<v1::FollowerReport>> Next();

  size_t bytes_held() const { return buffer_.size(); }

 private:
  std::string buffer_;
  absl::Status error_;
};

}  // namespace lockstep
