#include "worker/group/frame_codec.h"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <utility>

#include "common/status_macros.h"

namespace lockstep {
namespace {

constexpr size_t kSizeBytes = sizeof(uint32_t);

// Bytes already read are dropped when they outweigh the rest, so that each byte
// moves a bounded number of times.
constexpr size_t kLeastBytesToDrop = 64 << 10;

uint32_t LoadSize(absl::string_view bytes) {
  uint32_t size = 0;
  for (size_t i = 0; i < kSizeBytes; ++i) {
    size |= uint32_t{static_cast<uint8_t>(bytes[i])} << (8 * i);
  }
  return size;
}

// The sized run at the front of `bytes`; nothing while it is incomplete.
absl::StatusOr<std::optional<absl::string_view>> FirstSized(
    absl::string_view bytes, size_t max_bytes, absl::string_view what) {
  if (bytes.size() < kSizeBytes) return std::nullopt;
  const uint32_t size = LoadSize(bytes);
  if (size > max_bytes) {
    return absl::InvalidArgumentError(absl::StrCat(
        what, " of ", size, " bytes is above the limit of ", max_bytes, "."));
  }
  if (bytes.size() - kSizeBytes < size) return std::nullopt;
  return bytes.substr(kSizeBytes, size);
}

}  // namespace

void AppendSized(absl::string_view bytes, std::string* out) {
  for (size_t i = 0; i < kSizeBytes; ++i) {
    out->push_back(static_cast<char>(bytes.size() >> (8 * i)));
  }
  out->append(bytes.data(), bytes.size());
}

absl::StatusOr<std::optional<std::string>> TakeSized(size_t max_bytes,
                                                     std::string* buffer) {
  LOCKSTEP_ASSIGN_OR_RETURN(auto view,
                            FirstSized(*buffer, max_bytes, "a message"));
  if (!view.has_value()) return std::nullopt;
  std::string result(*view);
  buffer->erase(0, kSizeBytes + result.size());
  return result;
}

void AppendFrame(uint64_t epoch, const Frame& frame, std::string* out) {
  v1::FrameHeader header;
  header.set_epoch(epoch);
  header.set_step(frame.step);
  header.set_message_count(frame.messages.size());
  AppendSized(header.SerializeAsString(), out);
  for (const std::string& message : frame.messages) AppendSized(message, out);
}

void AppendDigest(const Digest& digest, std::string* out) {
  out->append(digest.begin(), digest.end());
}

void AppendFailure(uint64_t epoch, const v1::FirstFailure& failure,
                   std::string* out) {
  v1::FrameHeader header;
  header.set_epoch(epoch);
  *header.mutable_failure() = failure;
  AppendSized(header.SerializeAsString(), out);
}

absl::StatusOr<std::optional<FrameReader::Event>> FrameReader::Next() {
  if (position_ >= kLeastBytesToDrop && position_ >= buffer_.size() / 2) {
    buffer_.erase(0, position_);
    position_ = 0;
  }
  switch (expected_) {
    case Expected::kHeader:
      return ReadHeader();
    case Expected::kMessages:
      return ReadMessages();
    case Expected::kDigest:
      return ReadDigest();
  }
  return std::nullopt;
}

absl::StatusOr<std::optional<FrameReader::Event>> FrameReader::ReadHeader() {
  LOCKSTEP_ASSIGN_OR_RETURN(const auto bytes,
                            NextSized(kMaxHeaderBytes, "a frame header"));
  if (!bytes.has_value()) return std::nullopt;
  v1::FrameHeader header;
  if (!header.ParseFromArray(bytes->data(), bytes->size())) {
    return absl::InvalidArgumentError(
        absl::StrCat("the ", bytes->size(), " bytes after step ", last_step_,
                     " are no frame header."));
  }
  if (header.epoch() != epoch_) {
    return absl::InvalidArgumentError(
        absl::StrCat("a frame of epoch ", header.epoch(),
                     " reached a group of epoch ", epoch_, "."));
  }
  if (header.has_failure()) return Event(std::move(*header.mutable_failure()));
  if (header.step() != last_step_ + 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a frame of step ", header.step(), " follows step ", last_step_, "."));
  }
  if (header.message_count() > kMaxMessagesOfFrame) {
    return absl::InvalidArgumentError(
        absl::StrCat("step ", header.step(), " has ", header.message_count(),
                     " messages; the limit is ", kMaxMessagesOfFrame, "."));
  }
  last_step_ = header.step();
  frame_.step = header.step();
  frame_.messages.clear();
  messages_left_ = header.message_count();
  bytes_left_ = kMaxBytesOfFrame;
  expected_ = Expected::kMessages;
  return ReadMessages();
}

absl::StatusOr<std::optional<FrameReader::Event>> FrameReader::ReadMessages() {
  for (; messages_left_ > 0; --messages_left_) {
    LOCKSTEP_ASSIGN_OR_RETURN(
        const auto bytes,
        NextSized(kMaxMessageBytesOfFrame, "a message of a frame"));
    if (!bytes.has_value()) return std::nullopt;
    if (bytes->size() > bytes_left_) {
      return absl::InvalidArgumentError(absl::StrCat(
          "the messages of step ", frame_.step, " are above the limit of ",
          kMaxBytesOfFrame, " bytes a frame."));
    }
    bytes_left_ -= bytes->size();
    frame_.messages.emplace_back(*bytes);
  }
  expected_ = Expected::kDigest;
  return Event(std::exchange(frame_, Frame()));
}

std::optional<FrameReader::Event> FrameReader::ReadDigest() {
  Digest digest;
  if (rest().size() < digest.size()) return std::nullopt;
  std::copy_n(rest().begin(), digest.size(), digest.begin());
  position_ += digest.size();
  expected_ = Expected::kHeader;
  return Event(digest);
}

absl::StatusOr<std::optional<absl::string_view>> FrameReader::NextSized(
    size_t max_bytes, const char* what) {
  LOCKSTEP_ASSIGN_OR_RETURN(const auto bytes,
                            FirstSized(rest(), max_bytes, what));
  if (bytes.has_value()) position_ += kSizeBytes + bytes->size();
  return bytes;
}

}  // namespace lockstep
