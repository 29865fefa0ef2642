#include "worker/group/frame_codec.h"

#include <absl/strings/str_cat.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "common/status_macros.h"
#include "worker/group/step_progress.h"

namespace lockstep {
namespace {

constexpr size_t kSizeBytes = sizeof(uint32_t);
// A Hello, a HelloReply, a FollowerReport.
constexpr size_t kMaxPeerMessageBytes = 16 << 10;
constexpr size_t kMaxTextBytes = 1 << 10;  // of each text in them

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

// Whatever bytes it has, it fits in one line of a log and is all ASCII.
std::string PrintableText(absl::string_view text) {
  std::string printable;
  for (const unsigned char c : text.substr(0, kMaxTextBytes)) {
    if (c >= ' ' && c <= '~') {
      printable += static_cast<char>(c);
    } else {
      absl::StrAppend(&printable, "\\x", absl::Hex(c, absl::kZeroPad2));
    }
  }
  if (text.size() > kMaxTextBytes) printable += "...";
  return printable;
}

// Of a peer's message every string, which goes to logs and other messages.
void MakePrintable(google::protobuf::Message* message) {
  using google::protobuf::FieldDescriptor;
  const google::protobuf::Reflection& values = *message->GetReflection();
  std::vector<const FieldDescriptor*> fields;
  values.ListFields(*message, &fields);
  for (const FieldDescriptor* field : fields) {
    if (field->is_repeated()) continue;  // bytes only
    if (field->type() == FieldDescriptor::TYPE_MESSAGE) {
      MakePrintable(values.MutableMessage(message, field));
    } else if (field->type() == FieldDescriptor::TYPE_STRING) {
      values.SetString(message, field,
                       PrintableText(values.GetString(*message, field)));
    }
  }
}

template <typename Message>
absl::StatusOr<std::optional<Message>> TakeMessage(std::string* buffer,
                                                   absl::string_view what) {
  LOCKSTEP_ASSIGN_OR_RETURN(const auto bytes,
                            TakeSized(kMaxPeerMessageBytes, buffer));
  if (!bytes.has_value()) return std::nullopt;
  Message message;
  if (message.ParseFromString(*bytes)) {
    MakePrintable(&message);
    return message;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "it sent ", bytes->size(), " bytes that are no ", what, "."));
}

// Empty of no messages.
std::string DigestOf(const std::vector<std::string>& messages) {
  if (messages.empty()) return "";
  DigestBuilder builder;
  for (const std::string& message : messages) builder.Add(message);
  const Digest digest = builder.Finish();
  return std::string(digest.begin(), digest.end());
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

absl::StatusOr<std::optional<v1::Hello>> TakeHello(std::string* buffer) {
  return TakeMessage<v1::Hello>(buffer, "Hello");
}

absl::StatusOr<std::optional<v1::HelloReply>> TakeHelloReply(
    std::string* buffer) {
  return TakeMessage<v1::HelloReply>(buffer, "reply to it");
}

absl::StatusOr<std::optional<v1::FollowerReport>> ReportReader::Next() {
  LOCKSTEP_RETURN_IF_ERROR(error_);
  const size_t held = buffer_.size();
  auto report = TakeMessage<v1::FollowerReport>(&buffer_, "report");
  if (report.ok() && report->has_value() &&
      (*report)->kind_case() == v1::FollowerReport::KIND_NOT_SET) {
    report = absl::InvalidArgumentError(
        absl::StrCat("it sent ", held - buffer_.size() - kSizeBytes,
                     " bytes that are no report."));
  }
  if (!report.ok()) {
    error_ = report.status();
    buffer_ = {};
  }
  return report;
}

void AppendFrame(uint64_t epoch, const Frame& frame, std::string* out) {
  size_t bytes = 0;
  for (const std::string& message : frame.messages) bytes += message.size();
  v1::FrameHeader header;
  header.set_epoch(epoch);
  header.set_step(frame.step);
  header.set_message_count(frame.messages.size());
  header.set_message_bytes(bytes);
  header.set_message_digest(DigestOf(frame.messages));
  AppendSized(header.SerializeAsString(), out);
  for (const std::string& message : frame.messages) AppendSized(message, out);
}

void AppendDigest(uint64_t epoch, uint64_t step, const Digest& digest,
                  std::string* out) {
  v1::FrameHeader header;
  header.set_epoch(epoch);
  header.set_step(step);
  header.set_digest(digest.data(), digest.size());
  AppendSized(header.SerializeAsString(), out);
}

void AppendHeartbeat(uint64_t epoch, const v1::Heartbeat& heartbeat,
                     std::string* out) {
  v1::FrameHeader header;
  header.set_epoch(epoch);
  *header.mutable_heartbeat() = heartbeat;
  AppendSized(header.SerializeAsString(), out);
}

void AppendFailure(uint64_t epoch, const v1::FirstFailure& failure,
                   std::string* out) {
  v1::FrameHeader header;
  header.set_epoch(epoch);
  *header.mutable_failure() = failure;
  AppendSized(header.SerializeAsString(), out);
}

absl::StatusOr<std::optional<FrameReader::Event>> FrameReader::Next() {
  LOCKSTEP_RETURN_IF_ERROR(error_);
  if (position_ >= kLeastBytesToDrop && position_ >= buffer_.size() / 2) {
    buffer_.erase(0, position_);
    position_ = 0;
  }
  auto event = frame_.has_value() ? ReadMessages() : ReadHeader();
  if (!event.ok()) {
    error_ = event.status();
    buffer_ = {};
    position_ = 0;
    frame_.reset();
  }
  return event;
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
        absl::StrCat("a frame header of epoch ", header.epoch(), " after step ",
                     last_step_, " reached a group of epoch ", epoch_, "."));
  }
  if (header.has_failure()) return Event(std::move(*header.mutable_failure()));
  if (header.has_heartbeat()) {
    LOCKSTEP_RETURN_IF_ERROR(CheckHeartbeat(header.heartbeat()));
    return Event(std::move(*header.mutable_heartbeat()));
  }
  if (!header.digest().empty()) {
    LOCKSTEP_ASSIGN_OR_RETURN(const Digest digest, TakeDigest(header));
    return Event(digest);
  }
  LOCKSTEP_RETURN_IF_ERROR(BeginFrame(header));
  return ReadMessages();
}

// A leader has sent the frame before it plans, and the digest before it
// executes; what was lost at the end of a stream shows here.
absl::Status FrameReader::CheckHeartbeat(const v1::Heartbeat& heartbeat) const {
  const uint64_t frames_sent = heartbeat.stage() == v1::WAITS_FOR_FRAME
                                   ? FinishedStep(heartbeat)
                                   : heartbeat.step();
  if (frames_sent > last_step_) {
    return absl::InvalidArgumentError(
        absl::StrCat("the leader is in step ", heartbeat.step(),
                     "; its frame is missing after step ", last_step_, "."));
  }
  const bool executes_it =
      heartbeat.step() == last_step_ && heartbeat.stage() == v1::EXECUTES;
  if (owes_digest_ && (executes_it || FinishedStep(heartbeat) >= last_step_)) {
    return absl::InvalidArgumentError(
        absl::StrCat("the leader is in step ", heartbeat.step(), " at ",
                     v1::StepStage_Name(heartbeat.stage()),
                     "; the digest of step ", last_step_, " is missing."));
  }
  return absl::OkStatus();
}

absl::StatusOr<Digest> FrameReader::TakeDigest(const v1::FrameHeader& header) {
  if (!owes_digest_ || header.step() != last_step_) {
    return absl::InvalidArgumentError(
        absl::StrCat("a digest of step ", header.step(), " follows step ",
                     last_step_, owes_digest_ ? "." : " and its digest."));
  }
  Digest digest;
  if (header.digest().size() != digest.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the digest of step ", header.step(), " has ",
                     header.digest().size(), " bytes, not 16."));
  }
  std::copy(header.digest().begin(), header.digest().end(), digest.begin());
  owes_digest_ = false;
  return digest;
}

absl::Status FrameReader::BeginFrame(const v1::FrameHeader& header) {
  if (owes_digest_ || header.step() != last_step_ + 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a frame of step ", header.step(), " follows step ", last_step_,
        owes_digest_ ? ", whose digest is missing." : "."));
  }
  if (header.message_count() > kMaxMessagesOfFrame) {
    return absl::InvalidArgumentError(
        absl::StrCat("step ", header.step(), " has ", header.message_count(),
                     " messages; the limit is ", kMaxMessagesOfFrame, "."));
  }
  if (header.message_bytes() > kMaxBytesOfFrame) {
    return absl::InvalidArgumentError(
        absl::StrCat("the messages of step ", header.step(), " have ",
                     header.message_bytes(), " bytes; the limit is ",
                     kMaxBytesOfFrame, "."));
  }
  last_step_ = header.step();
  owes_digest_ = true;
  message_digest_ = header.message_digest();
  frame_ = Frame{.step = header.step(), .messages = {}};
  messages_left_ = header.message_count();
  bytes_left_ = header.message_bytes();
  return absl::OkStatus();
}

absl::StatusOr<std::optional<FrameReader::Event>> FrameReader::ReadMessages() {
  for (; messages_left_ > 0; --messages_left_) {
    LOCKSTEP_ASSIGN_OR_RETURN(
        const auto bytes,
        NextSized(std::min(bytes_left_, kMaxMessageBytesOfFrame), "a message"));
    if (!bytes.has_value()) return std::nullopt;
    bytes_left_ -= bytes->size();
    frame_->messages.emplace_back(*bytes);
  }
  if (bytes_left_ > 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("the messages of step ", last_step_, " lack ", bytes_left_,
                     " bytes of what its frame announced."));
  }
  if (DigestOf(frame_->messages) != message_digest_) {
    return absl::InvalidArgumentError(
        absl::StrCat("the messages of step ", last_step_,
                     " are not those that its frame announced."));
  }
  Event event(*std::move(frame_));
  frame_.reset();
  return event;
}

absl::StatusOr<std::optional<absl::string_view>> FrameReader::NextSized(
    size_t max_bytes, const char* what) {
  const auto bytes = FirstSized(rest(), max_bytes, what);
  if (!bytes.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat(frame_.has_value() ? "in step " : "after step ",
                     last_step_, ": ", bytes.status().message()));
  }
  if (bytes->has_value()) position_ += kSizeBytes + (*bytes)->size();
  return bytes;
}

}  // namespace lockstep
