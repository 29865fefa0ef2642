#include "worker/group/frame_codec.h"

#include <gmock/gmock.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>

namespace lockstep {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr uint64_t kEpoch = 7;

Digest DigestOf(uint8_t value) {
  Digest digest;
  digest.fill(value);
  return digest;
}

std::string TwoSteps() {
  std::string bytes;
  AppendFrame(kEpoch, {.step = 1, .messages = {"one", "", "three"}}, &bytes);
  AppendDigest(kEpoch, 1, DigestOf(0xaa), &bytes);
  AppendFrame(kEpoch, {.step = 2, .messages = {}}, &bytes);
  AppendDigest(kEpoch, 2, DigestOf(0xbb), &bytes);
  return bytes;
}

absl::Status ErrorOf(const std::string& bytes) {
  FrameReader reader(kEpoch);
  reader.Append(bytes);
  while (true) {
    const auto event = reader.Next();
    if (!event.ok()) return event.status();
    if (!event->has_value()) return absl::OkStatus();
  }
}

void ExpectTwoSteps(const std::vector<FrameReader::Event>& events) {
  ASSERT_EQ(events.size(), 4);
  const Frame& first = std::get<Frame>(events[0]);
  EXPECT_EQ(first.step, 1);
  EXPECT_THAT(first.messages, ElementsAre("one", "", "three"));
  EXPECT_EQ(std::get<Digest>(events[1]), DigestOf(0xaa));
  EXPECT_EQ(std::get<Frame>(events[2]).step, 2);
  EXPECT_THAT(std::get<Frame>(events[2]).messages, ElementsAre());
  EXPECT_EQ(std::get<Digest>(events[3]), DigestOf(0xbb));
}

TEST(FrameReader, ReadsWhatWasWrittenHoweverItIsCut) {
  const std::string bytes = TwoSteps();
  for (size_t piece = 1; piece <= bytes.size(); ++piece) {
    FrameReader reader(kEpoch);
    std::vector<FrameReader::Event> events;
    for (size_t begin = 0; begin < bytes.size(); begin += piece) {
      reader.Append(absl::string_view(bytes).substr(begin, piece));
      while (true) {
        auto event = reader.Next();
        ASSERT_TRUE(event.ok()) << event.status();
        if (!event->has_value()) break;
        events.push_back(**std::move(event));
      }
    }
    ExpectTwoSteps(events);
  }
}

TEST(FrameReader, AFrameComesBeforeItsDigestArrives) {
  std::string bytes;
  AppendFrame(kEpoch, {.step = 1, .messages = {"one"}}, &bytes);
  FrameReader reader(kEpoch);
  reader.Append(bytes);
  EXPECT_TRUE(std::holds_alternative<Frame>(**reader.Next()));
  EXPECT_FALSE(reader.Next()->has_value());
}

TEST(FrameReader, AFailureIsReadInPlaceOfAFrame) {
  v1::FirstFailure failure;
  failure.set_rank(3);
  failure.set_reason("it left");
  std::string bytes = TwoSteps();
  AppendFailure(kEpoch, failure, &bytes);
  FrameReader reader(kEpoch);
  reader.Append(bytes);
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(reader.Next()->has_value());
  const auto event = reader.Next();
  EXPECT_EQ(std::get<v1::FirstFailure>(**event).rank(), 3);
  EXPECT_EQ(std::get<v1::FirstFailure>(**event).reason(), "it left");
}

TEST(FrameReader, RefusesAnotherEpoch) {
  std::string bytes;
  AppendFrame(8, {.step = 1, .messages = {}}, &bytes);
  EXPECT_EQ(ErrorOf(bytes).message(),
            "a frame header of epoch 8 after step 0 reached a group of epoch "
            "7.");
}

TEST(FrameReader, AHeartbeatComesBetweenAnyTwo) {
  v1::Heartbeat heartbeat;
  heartbeat.set_collectives(5);
  std::string bytes;
  AppendHeartbeat(kEpoch, heartbeat, &bytes);
  AppendFrame(kEpoch, {.step = 1, .messages = {"one"}}, &bytes);
  AppendHeartbeat(kEpoch, heartbeat, &bytes);
  AppendDigest(kEpoch, 1, DigestOf(0xaa), &bytes);
  FrameReader reader(kEpoch);
  reader.Append(bytes);
  const auto first = reader.Next();
  EXPECT_EQ(std::get<v1::Heartbeat>(**first).collectives(), 5);
  EXPECT_TRUE(std::holds_alternative<Frame>(**reader.Next()));
  EXPECT_TRUE(std::holds_alternative<v1::Heartbeat>(**reader.Next()));
  EXPECT_EQ(std::get<Digest>(**reader.Next()), DigestOf(0xaa));
}

// Whatever is lost, doubled or in another order is named with its step.
TEST(FrameReader, RefusesWhatNoLeaderSendsThere) {
  const auto frame = [](uint64_t step) {
    std::string bytes;
    AppendFrame(kEpoch, {.step = step, .messages = {"one"}}, &bytes);
    return bytes;
  };
  const auto digest = [](uint64_t step) {
    std::string bytes;
    AppendDigest(kEpoch, step, DigestOf(0xaa), &bytes);
    return bytes;
  };
  const auto header = [](const v1::FrameHeader& fields) {
    v1::FrameHeader header = fields;
    header.set_epoch(kEpoch);
    std::string bytes;
    AppendSized(header.SerializeAsString(), &bytes);
    return bytes;
  };
  const auto beat = [](uint64_t step, v1::StepStage stage) {
    v1::Heartbeat heartbeat;
    heartbeat.set_step(step);
    heartbeat.set_stage(stage);
    std::string bytes;
    AppendHeartbeat(kEpoch, heartbeat, &bytes);
    return bytes;
  };
  v1::FrameHeader short_digest;
  short_digest.set_step(1);
  short_digest.set_digest("short");
  v1::FrameHeader two_bytes;
  two_bytes.set_step(1);
  two_bytes.set_message_count(1);
  two_bytes.set_message_bytes(2);
  v1::FrameHeader four_bytes = two_bytes;
  four_bytes.set_message_bytes(4);
  std::string message;
  AppendSized("one", &message);
  std::string other_message = message;
  other_message.back() ^= 1;
  const std::string changed =
      frame(1).substr(0, frame(1).size() - message.size()) + other_message;

  const std::pair<std::string, std::string> kCases[] = {
      {frame(1) + frame(1),
       "a frame of step 1 follows step 1, whose digest is missing."},
      {frame(1) + frame(2),
       "a frame of step 2 follows step 1, whose digest is missing."},
      {frame(1) + digest(1) + frame(1), "a frame of step 1 follows step 1."},
      {frame(1) + digest(1) + frame(3), "a frame of step 3 follows step 1."},
      {digest(1), "a digest of step 1 follows step 0 and its digest."},
      {frame(1) + digest(2), "a digest of step 2 follows step 1."},
      {frame(1) + digest(1) + digest(1),
       "a digest of step 1 follows step 1 and its digest."},
      {frame(1) + header(short_digest),
       "the digest of step 1 has 5 bytes, not 16."},
      {header(two_bytes) + message,
       "in step 1: a message of 3 bytes is above the limit of 2."},
      {header(four_bytes) + message,
       "the messages of step 1 lack 1 bytes of what its frame announced."},
      {changed,
       "the messages of step 1 are not those that its frame announced."},
      {beat(2, v1::WAITS_FOR_FRAME) + frame(1),
       "the leader is in step 2; its frame is missing after step 0."},
      {frame(1) + digest(1) + beat(2, v1::PLANS),
       "the leader is in step 2; its frame is missing after step 1."},
      {frame(1) + beat(1, v1::EXECUTES),
       "the leader is in step 1 at EXECUTES; the digest of step 1 is missing."},
      {frame(1) + beat(1, v1::FINISHED),
       "the leader is in step 1 at FINISHED; the digest of step 1 is missing."},
  };
  for (const auto& [bytes, error] : kCases) {
    EXPECT_EQ(ErrorOf(bytes).message(), error);
  }
  for (const std::string& bytes :
       {beat(1, v1::WAITS_FOR_FRAME) + frame(1) + beat(1, v1::PLANS) +
            beat(1, v1::WAITS_FOR_DIGEST) + digest(1) + beat(1, v1::EXECUTES) +
            beat(1, v1::FINISHED) + beat(2, v1::WAITS_FOR_FRAME),
        // It may be read long after it was sent.
        frame(1) + digest(1) + frame(2) + beat(1, v1::EXECUTES)}) {
    EXPECT_TRUE(ErrorOf(bytes).ok()) << ErrorOf(bytes);
  }
}

TEST(FrameReader, RefusesAStepOutOfOrder) {
  std::string bytes;
  AppendFrame(kEpoch, {.step = 2, .messages = {}}, &bytes);
  EXPECT_EQ(ErrorOf(bytes).message(), "a frame of step 2 follows step 0.");
}

TEST(FrameReader, RefusesSizesAboveTheirLimits) {
  EXPECT_THAT(std::string(ErrorOf("\xff\xff\xff\xff").message()),
              HasSubstr("4294967295 bytes is above the limit of 16384"));

  v1::FrameHeader header;
  header.set_epoch(kEpoch);
  header.set_step(1);
  header.set_message_count(kMaxMessagesOfFrame + 1);
  std::string bytes;
  AppendSized(header.SerializeAsString(), &bytes);
  EXPECT_THAT(std::string(ErrorOf(bytes).message()),
              HasSubstr("65537 messages; the limit is 65536"));
}

TEST(FrameReader, RefusesAFrameWhoseMessagesAreTooLargeTogether) {
  Frame frame{
      .step = 1,
      .messages = std::vector<std::string>(3, std::string(50 << 20, 'x'))};
  std::string bytes;
  AppendFrame(kEpoch, frame, &bytes);
  EXPECT_EQ(ErrorOf(bytes).message(),
            "the messages of step 1 have 157286400 bytes; the limit is "
            "134217728.");
  frame.messages.pop_back();
  bytes.clear();
  AppendFrame(kEpoch, frame, &bytes);
  EXPECT_TRUE(ErrorOf(bytes).ok());
}

// A peer that babbles on until this process has left fills no memory.
template <typename Reader>
void ExpectToDropAllAfterAnError(Reader& reader, const std::string& wrong) {
  reader.Append(wrong);
  const absl::Status error = reader.Next().status();
  EXPECT_FALSE(error.ok());
  for (int i = 0; i < 100; ++i) {
    reader.Append(std::string(64 << 10, '\1'));
    EXPECT_EQ(reader.Next().status(), error);
    EXPECT_EQ(reader.bytes_held(), 0);
  }
}

TEST(FrameReader, KeepsNothingAfterAnError) {
  Frame frame{.step = 1, .messages = {"one", "two"}};
  std::string too_large("\xff\xff\xff\xff"), none, lost;
  AppendSized("\xff", &none);
  AppendFrame(kEpoch, frame, &lost);
  lost.erase(lost.size() - 7);  // its second message, of which
  AppendSized("tow", &lost);    // this is another
  for (const std::string& wrong : {too_large, none, lost}) {
    FrameReader reader(kEpoch);
    ExpectToDropAllAfterAnError(reader, wrong);
  }
}

TEST(ReportReader, KeepsNothingAfterAnError) {
  std::string too_large("\xff\xff\xff\xff"), none, empty;
  AppendSized("\xff", &none);
  AppendSized("", &empty);
  for (const std::string& wrong : {too_large, none, empty}) {
    ReportReader reader;
    ExpectToDropAllAfterAnError(reader, wrong);
  }
}

TEST(ReportReader, TakesReportsAsTheyCome) {
  v1::FollowerReport beat, leave;
  beat.mutable_heartbeat()->set_step(7);
  leave.mutable_leave();
  std::string bytes;
  AppendSized(beat.SerializeAsString(), &bytes);
  AppendSized(leave.SerializeAsString(), &bytes);
  ReportReader reader;
  reader.Append(bytes.substr(0, bytes.size() - 1));
  EXPECT_EQ((**reader.Next()).heartbeat().step(), 7);
  EXPECT_FALSE(reader.Next()->has_value());
  reader.Append(bytes.substr(bytes.size() - 1));
  EXPECT_TRUE((**reader.Next()).has_leave());
}

void SetAllTexts(const std::string& text, google::protobuf::Message* message) {
  const auto& fields = *message->GetDescriptor();
  for (int i = 0; i < fields.field_count(); ++i) {
    const auto* field = fields.field(i);
    if (field->is_repeated()) continue;
    const auto* values = message->GetReflection();
    if (field->type() == google::protobuf::FieldDescriptor::TYPE_STRING) {
      values->SetString(message, field, text);
    } else if (field->message_type() != nullptr) {
      SetAllTexts(text, values->MutableMessage(message, field));
    }
  }
}

TEST(PeerMessages, TextsOfPeersAreShortLinesOfPrintableAscii) {
  const struct {
    std::string sent, read;
  } kTexts[] = {
      {"node-b", "node-b"},
      {"", ""},
      {"a\nE1201 \x1b[31mb\x7f", "a\\x0aE1201 \\x1b[31mb\\x7f"},
      {"\u202e\u0085", "\\xe2\\x80\\xae\\xc2\\x85"},
      {std::string(1024, 'x'), std::string(1024, 'x')},
      {std::string(1025, 'x'), std::string(1024, 'x') + "..."},
  };
  for (const auto& text : kTexts) {
    SCOPED_TRACE(text.read);
    v1::Hello sent, read;
    SetAllTexts(text.sent, &sent);
    SetAllTexts(text.read, &read);
    std::string bytes;
    AppendSized(sent.SerializeAsString(), &bytes);
    EXPECT_EQ((**TakeHello(&bytes)).SerializeAsString(),
              read.SerializeAsString());
    v1::HelloReply reply;
    reply.mutable_refusal()->set_reason(text.sent);
    AppendSized(reply.SerializeAsString(), &bytes);
    EXPECT_EQ((**TakeHelloReply(&bytes)).refusal().reason(), text.read);
    v1::FollowerReport report;
    report.mutable_failure()->set_reason(text.sent);
    ReportReader reader;
    AppendSized(report.SerializeAsString(), &bytes);
    reader.Append(bytes);
    EXPECT_EQ((**reader.Next()).failure().reason(), text.read);
  }
}

TEST(TakeSized, TakesOneRunAtATime) {
  std::string buffer;
  AppendSized("first", &buffer);
  AppendSized("second", &buffer);
  buffer.pop_back();
  EXPECT_EQ(**TakeSized(10, &buffer), "first");
  EXPECT_FALSE(TakeSized(10, &buffer)->has_value());
  buffer.push_back('d');
  EXPECT_EQ(**TakeSized(10, &buffer), "second");
  EXPECT_TRUE(buffer.empty());
}

TEST(TakeSized, RefusesMoreThanTheLimit) {
  std::string buffer;
  AppendSized("first", &buffer);
  EXPECT_EQ(TakeSized(4, &buffer).status().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace lockstep
