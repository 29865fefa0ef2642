#include "worker/group/frame_codec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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
  AppendDigest(DigestOf(0xaa), &bytes);
  AppendFrame(kEpoch, {.step = 2, .messages = {}}, &bytes);
  AppendDigest(DigestOf(0xbb), &bytes);
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
  EXPECT_THAT(std::string(ErrorOf(bytes).message()), HasSubstr("epoch 8"));
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
            "the messages of step 1 are above the limit of 134217728 bytes a "
            "frame.");
  frame.messages.pop_back();
  bytes.clear();
  AppendFrame(kEpoch, frame, &bytes);
  EXPECT_TRUE(ErrorOf(bytes).ok());
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
