#include "common/wire.h"

#include <google/protobuf/util/message_differencer.h>
#include <grpcpp/support/slice.h>
#include <gtest/gtest.h>

#include <string>

#include "proto/inference.pb.h"

namespace lockstep {
namespace {

grpc::ByteBuffer Buffer(const std::string& bytes) {
  const grpc::Slice slice(bytes);
  return grpc::ByteBuffer(&slice, 1);
}

// An encoded field of a length below 128.
std::string Field(int number, const std::string& bytes) {
  return std::string{static_cast<char>(number << 3 | 2),
                     static_cast<char>(bytes.size())} +
         bytes;
}

TEST(Wire, AMessageGoesThereAndBack) {
  v1::GenerateRequest request, parsed;
  request.set_text("né");
  request.mutable_sampling()->set_temperature(0);
  ASSERT_TRUE(ParseMessage(SerializeMessage(request), &parsed).ok());
  EXPECT_TRUE(
      google::protobuf::util::MessageDifferencer::Equals(request, parsed));
}

TEST(Wire, NamesWhatIsWrong) {
  const std::string bad = "ab\xff";
  const struct {
    std::string bytes;
    std::string error;
  } kCases[] = {
      {Field(3, bad),
       "text is no valid UTF-8: its byte 2 starts no character."},
      {Field(3, "fine") + Field(7, "fine") + Field(7, "\xc3"),
       "stop[1] is no valid UTF-8: its byte 0 starts no character."},
      {Field(4, Field(1, Field(1, "user")) + Field(1, Field(2, bad))),
       "chat.messages[1].content is no valid UTF-8: its byte 2 starts no "
       "character."},
      {"\x1a\x7fshort",
       "the request is no well-formed lockstep.v1.GenerateRequest."},
      {"\xff\xff\xff",
       "the request is no well-formed lockstep.v1.GenerateRequest."},
  };
  for (const auto& c : kCases) {
    v1::GenerateRequest request;
    ::testing::internal::CaptureStderr();
    EXPECT_EQ(ParseMessage(Buffer(c.bytes), &request),
              absl::InvalidArgumentError(c.error));
    EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
  }
}

}  // namespace
}  // namespace lockstep
