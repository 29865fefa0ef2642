#include "tokenizer_service/service.h"

#include <absl/strings/str_cat.h>
#include <absl/synchronization/notification.h>
#include <google/protobuf/unknown_field_set.h>
#include <grpcpp/generic/generic_stub.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "common/grpc_server.h"
#include "common/grpc_status.h"
#include "tests/testing/fake_tokenizer.h"

namespace lockstep {
namespace {

void ExpectRefusal(const absl::Status& status, const std::string& message) {
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(), message);
}

class ServiceTest : public ::testing::Test {
 protected:
  void Start(const Tokenizer* tokenizer, int threads = 2, size_t queue = 16) {
    service_ = std::make_unique<TokenizerService>(
        tokenizer, TokenizerService::Options{.threads = threads,
                                             .queue = {.tasks = queue}});
    auto server = GrpcServer::Start("127.0.0.1:0", "listen", {service_.get()},
                                    {v1::Tokenizer::service_full_name()});
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
    channel_ = grpc::CreateCustomChannel(
        absl::StrCat("127.0.0.1:", server_->port()),
        grpc::InsecureChannelCredentials(), ChannelArguments());
    stub_ = v1::Tokenizer::NewStub(channel_);
  }

  void TearDown() override { server_.reset(); }

  absl::Status Encode(const v1::EncodeRequest& request,
                      v1::EncodeResponse* response) {
    grpc::ClientContext context;
    return FromGrpc(stub_->Encode(&context, request, response));
  }

  absl::Status Decode(const v1::DecodeRequest& request,
                      v1::DecodeResponse* response) {
    grpc::ClientContext context;
    return FromGrpc(stub_->Decode(&context, request, response));
  }

  FakeTokenizer fake_;
  std::unique_ptr<TokenizerService> service_;
  std::unique_ptr<GrpcServer> server_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::Tokenizer::Stub> stub_;
};

TEST_F(ServiceTest, EncodesWithSpecialTokensUnlessTold) {
  Start(&fake_);
  v1::EncodeRequest request;
  request.set_text("hi");
  v1::EncodeResponse with, without;
  ASSERT_TRUE(Encode(request, &with).ok());
  request.set_add_special_tokens(false);
  ASSERT_TRUE(Encode(request, &without).ok());
  EXPECT_EQ(
      std::vector<uint32_t>(with.token_ids().begin(), with.token_ids().end()),
      (std::vector<uint32_t>{FakeTokenizer::kBos, 'h', 'i'}));
  EXPECT_EQ(without.token_ids_size(), 2);
}

TEST_F(ServiceTest, DecodesSpecialTokensUnlessTold) {
  Start(&fake_);
  v1::DecodeRequest request;
  request.add_token_ids('h');
  request.add_token_ids(FakeTokenizer::kEos);
  v1::DecodeResponse response;
  ASSERT_TRUE(Decode(request, &response).ok());
  EXPECT_EQ(response.text(), "h<eos>");
  request.set_skip_special_tokens(true);
  ASSERT_TRUE(Decode(request, &response).ok());
  EXPECT_EQ(response.text(), "h");
}

TEST_F(ServiceTest, NamesTheIdOutsideTheVocabulary) {
  Start(&fake_);
  v1::DecodeRequest request;
  request.add_token_ids('h');
  request.add_token_ids(259);
  v1::DecodeResponse response;
  ExpectRefusal(Decode(request, &response),
                "token_ids[1] is 259, outside the vocabulary of 259 ids.");
}

TEST_F(ServiceTest, RefusesMoreTextAndIdsThanAllowed) {
  Start(&fake_);
  v1::EncodeRequest text;
  text.set_text(std::string(kMaxTextBytes + 1, 'x'));
  v1::EncodeResponse ids;
  ExpectRefusal(Encode(text, &ids),
                "text is 16777217 bytes, more than the 16777216 allowed.");
  v1::DecodeRequest many;
  many.mutable_token_ids()->Resize((1 << 20) + 1, 'x');
  v1::DecodeResponse response;
  ExpectRefusal(Decode(many, &response),
                "token_ids has 1048577 ids, more than the 1048576 allowed.");
}

TEST_F(ServiceTest, RefusesFieldsItDoesNotKnow) {
  Start(&fake_);
  v1::EncodeRequest request;
  request.GetReflection()->MutableUnknownFields(&request)->AddVarint(9, 1);
  v1::EncodeResponse response;
  ExpectRefusal(Encode(request, &response),
                "field number 9 of EncodeRequest is not known to this server.");
}

TEST_F(ServiceTest, NamesTheByteThatIsNoUtf8) {
  Start(&fake_);
  grpc::GenericStub stub(channel_);
  grpc::ClientContext context;
  grpc::CompletionQueue queue;
  // Field 1, four bytes.
  const grpc::Slice slice(std::string("\x0a\x04hi\xff!"));
  const auto call =
      stub.PrepareUnaryCall(&context, "/lockstep.v1.Tokenizer/Encode",
                            grpc::ByteBuffer(&slice, 1), &queue);
  grpc::ByteBuffer response;
  grpc::Status status;
  call->StartCall();
  call->Finish(&response, &status, nullptr);
  void* tag = nullptr;
  bool ok = false;
  ASSERT_TRUE(queue.Next(&tag, &ok));
  ExpectRefusal(FromGrpc(status),
                "text is no valid UTF-8: its byte 2 starts no character.");
}

TEST_F(ServiceTest, PassesOnWhatTheTemplateRaises) {
  Start(&fake_);
  v1::RenderChatRequest request;
  request.set_context_json(
      R"({"messages": [{"role": "raise", "content": "no way"}]})");
  v1::RenderChatResponse response;
  grpc::ClientContext context;
  ExpectRefusal(FromGrpc(stub_->RenderChat(&context, request, &response)),
                "no way");
}

// Encode waits until it may go on.
class SlowTokenizer : public FakeTokenizer {
 public:
  absl::StatusOr<std::vector<uint32_t>> Encode(
      absl::string_view text, bool add_special_tokens) const override {
    if (!running_.HasBeenNotified()) running_.Notify();
    release_.WaitForNotification();
    return FakeTokenizer::Encode(text, add_special_tokens);
  }

  mutable absl::Notification running_, release_;
};

TEST_F(ServiceTest, RefusesWhatItCanNotQueueAndFinishesTheRest) {
  SlowTokenizer slow;
  Start(&slow, /*threads=*/1, /*queue=*/1);
  v1::EncodeRequest request;
  request.set_text("x");
  std::vector<absl::Status> statuses(3);
  absl::Notification refused;
  const auto call = [&](int i) {
    v1::EncodeResponse response;
    statuses[i] = Encode(request, &response);
    if (!statuses[i].ok()) refused.Notify();
  };
  std::thread first(call, 0);
  slow.running_.WaitForNotification();
  // One of these waits, the other finds the queue full.
  std::thread second(call, 1), third(call, 2);
  refused.WaitForNotification();
  slow.release_.Notify();
  for (std::thread* thread : {&first, &second, &third}) thread->join();
  EXPECT_TRUE(statuses[0].ok()) << statuses[0];
  EXPECT_NE(statuses[1].ok(), statuses[2].ok());
  EXPECT_EQ((statuses[1].ok() ? statuses[2] : statuses[1]).code(),
            absl::StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace lockstep
