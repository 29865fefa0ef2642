#include "bench/gateway/vllm_echo_engine.h"

#include <google/protobuf/unknown_field_set.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace lockstep::bench {
namespace {

using Fields = google::protobuf::UnknownFieldSet;

std::string Bytes(const Fields& fields) {
  std::string bytes;
  fields.SerializeToString(&bytes);
  return bytes;
}

// For tokens of the prompt 5, 300: see the engine for the numbers.
grpc::ByteBuffer Request(uint32_t max_tokens, uint64_t seed) {
  Fields input, sampling, request;
  input.AddLengthDelimited(2, "\x05\xac\x02");
  sampling.AddVarint(8, max_tokens);
  sampling.AddVarint(24, seed);
  request.AddLengthDelimited(2, Bytes(input));
  request.AddLengthDelimited(4, Bytes(sampling));
  const grpc::Slice slice(Bytes(request));
  return grpc::ByteBuffer(&slice, 1);
}

grpc::ByteBuffer Nothing() {
  const grpc::Slice slice;
  return grpc::ByteBuffer(&slice, 1);
}

class VllmEchoEngineTest : public ::testing::Test {
 protected:
  VllmEchoEngineTest() {
    auto engine = VllmEchoEngine::Start(/*vocabulary_size=*/259, &sent_);
    EXPECT_TRUE(engine.ok()) << engine.status();
    engine_ = *std::move(engine);
  }

  // All responses of a call, and how it ended.
  std::pair<std::vector<std::string>, grpc::Status> Ask(
      const std::string& method, const grpc::ByteBuffer& request) {
    grpc::GenericStub stub(grpc::CreateChannel(
        engine_->address(), grpc::InsecureChannelCredentials()));
    grpc::ClientContext context;
    grpc::CompletionQueue queue;
    const auto await = [&queue] {
      void* tag = nullptr;
      bool ok = false;
      return queue.Next(&tag, &ok) && ok;
    };
    const auto call = stub.PrepareCall(
        &context, "/vllm.grpc.engine.VllmEngine/" + method, &queue);
    call->StartCall(nullptr);
    EXPECT_TRUE(await());
    call->WriteLast(request, grpc::WriteOptions(), nullptr);
    await();
    std::vector<std::string> responses;
    for (grpc::ByteBuffer response;;) {
      call->Read(&response, nullptr);
      if (!await()) break;
      grpc::Slice slice;
      EXPECT_TRUE(response.DumpToSingleSlice(&slice).ok());
      responses.emplace_back(slice.begin(), slice.end());
    }
    grpc::Status status;
    call->Finish(&status, nullptr);
    EXPECT_TRUE(await());
    return {responses, status};
  }

  SentTimes sent_{/*streams=*/2, /*tokens=*/3};
  std::unique_ptr<VllmEchoEngine> engine_;
};

// Bytes as protoc's own classes for `vllm_engine.proto` write them.
TEST_F(VllmEchoEngineTest, SaysThePromptOverAndOver) {
  for (const auto interval :
       {std::chrono::milliseconds(0), std::chrono::milliseconds(1)}) {
    engine_->set_pace({.interval = interval, .in_steps = true});
    const auto [responses, status] = Ask("Generate", Request(3, 1));
    EXPECT_TRUE(status.ok()) << status.error_message();
    EXPECT_EQ(responses, (std::vector<std::string>{
                             "\x0a\x07\x0a\x01\x05\x10\x02\x18\x01",
                             "\x0a\x08\x0a\x02\xac\x02\x10\x02\x18\x01",
                             "\x0a\x07\x0a\x01\x05\x10\x02\x18\x01",
                             "\x12\x0c\x12\x06length\x18\x02\x20\x03"}));
    EXPECT_LT(sent_.SecondsSince(1, 2, SteadyClock::now()), 3600);
  }
}

TEST_F(VllmEchoEngineTest, RefusesWhatItHasNoRoomToTime) {
  for (const auto& request : {Request(4, 0), Request(1, 2)}) {
    EXPECT_EQ(Ask("Generate", request).second.error_code(),
              grpc::StatusCode::INVALID_ARGUMENT);
  }
}

TEST_F(VllmEchoEngineTest, SaysWhatItIs) {
  const auto [health, ended_well] = Ask("HealthCheck", Nothing());
  EXPECT_TRUE(ended_well.ok());
  EXPECT_EQ(health, std::vector<std::string>{"\x08\x01\x12\x02ok"});
  EXPECT_EQ(Ask("GetModelInfo", Nothing()).first.size(), 1);
  EXPECT_EQ(Ask("GetServerInfo", Nothing()).first.size(), 1);
  EXPECT_EQ(Ask("FlushCache", Nothing()).second.error_code(),
            grpc::StatusCode::UNIMPLEMENTED);
}

}  // namespace
}  // namespace lockstep::bench
