#include "frontend/chat/chat_client.h"

#include <absl/strings/str_cat.h>
#include <absl/synchronization/notification.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>

#include "common/grpc_server.h"

namespace lockstep {
namespace {

// A gateway that answers a question with a thought, a word and then nothing,
// and says nothing at all of its models.
class SilentGateway : public v1::Inference::CallbackService {
 public:
  SilentGateway() {
    auto server = GrpcServer::Start("127.0.0.1:0", "listen", {this}, {});
    EXPECT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }

  std::string address() const {
    return absl::StrCat("127.0.0.1:", server_->port());
  }
  void Stop() { server_ = nullptr; }

 private:
  class Stream : public grpc::ServerWriteReactor<v1::GenerateResponse> {
   public:
    Stream() {
      word_.mutable_delta()->set_text("word");
      word_.mutable_delta()->set_reasoning("hm");
      StartWrite(&word_);
    }
    void OnCancel() override { Finish(grpc::Status::CANCELLED); }
    void OnDone() override { delete this; }

   private:
    v1::GenerateResponse word_;
  };

  class Silence : public grpc::ServerUnaryReactor {
   public:
    void OnCancel() override { Finish(grpc::Status::CANCELLED); }
    void OnDone() override { delete this; }
  };

  grpc::ServerWriteReactor<v1::GenerateResponse>* Generate(
      grpc::CallbackServerContext*, const v1::GenerateRequest*) override {
    return new Stream;
  }
  grpc::ServerUnaryReactor* ListModels(grpc::CallbackServerContext*,
                                       const v1::ListModelsRequest*,
                                       v1::ListModelsResponse*) override {
    return new Silence;
  }

  std::unique_ptr<GrpcServer> server_;
};

// One that lists its model for a key.
class KeyedGateway : public v1::Inference::Service {
 public:
  KeyedGateway() {
    auto server = GrpcServer::Start("127.0.0.1:0", "listen", {this}, {});
    EXPECT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }

  std::string address() const {
    return absl::StrCat("127.0.0.1:", server_->port());
  }

 private:
  grpc::Status ListModels(grpc::ServerContext* context,
                          const v1::ListModelsRequest*,
                          v1::ListModelsResponse* response) override {
    const auto& metadata = context->client_metadata();
    const auto key = metadata.find("authorization");
    if (key == metadata.end() || key->second != "Bearer of-the-test") {
      return {grpc::StatusCode::UNAUTHENTICATED, "a key is needed."};
    }
    response->add_models()->set_name("model");
    return grpc::Status::OK;
  }

  std::unique_ptr<GrpcServer> server_;
};

constexpr auto kIgnore = [](absl::string_view) {};

TEST(ChatClient, CancelEndsTheAnswerThatIsBeingWritten) {
  SilentGateway gateway;
  ChatClient client(gateway.address());
  ChatCall call;
  const ChatAnswer answer =
      client.Ask(&call, {}, [&](absl::string_view) { call.Cancel(); });
  EXPECT_TRUE(call.is_cancelled());
  EXPECT_EQ(answer.text, "word");
  EXPECT_TRUE(absl::IsCancelled(answer.status)) << answer.status;
}

TEST(ChatClient, ShowsWhatIsThoughtBeforeWhatIsSaid) {
  SilentGateway gateway;
  ChatClient client(gateway.address());
  ChatCall call;
  std::string shown;
  const ChatAnswer answer = client.Ask(&call, {}, [&](absl::string_view text) {
    shown.append(text.data(), text.size());
    if (text == "word") call.Cancel();
  });
  EXPECT_EQ(shown, "hm\n\nword");
  EXPECT_EQ(answer.text, "word");
}

TEST(ChatClient, CancelIsRememberedUntilTheCallStarts) {
  SilentGateway gateway;
  ChatClient client(gateway.address());
  ChatCall asking, listing;
  asking.Cancel();
  listing.Cancel();
  EXPECT_TRUE(absl::IsCancelled(client.Ask(&asking, {}, kIgnore).status));
  EXPECT_TRUE(absl::IsCancelled(client.ModelName(&listing).status()));
}

TEST(ChatClient, CancelEndsTheWaitForTheModelsName) {
  SilentGateway gateway;
  ChatClient client(gateway.address());
  ChatCall call;
  std::thread user([&] { call.Cancel(); });
  EXPECT_TRUE(absl::IsCancelled(client.ModelName(&call).status()));
  user.join();
}

// gRPC says so in its own words only, which may change.
TEST(ChatClient, TellsWhatToDoWhereThereIsNoGateway) {
  SilentGateway gateway;
  const std::string address = gateway.address();
  gateway.Stop();
  ChatClient client(address);
  const auto error = absl::UnavailableError(absl::StrCat(
      "There is no gateway at ", address,
      "; start one with ./lockstep up, or name another with --server."));
  ChatCall listing, asking;
  EXPECT_EQ(client.ModelName(&listing).status(), error);
  EXPECT_EQ(client.Ask(&asking, {}, kIgnore).status, error);
}

TEST(ChatClient, SendsItsKey) {
  KeyedGateway gateway;
  ChatCall refused, answered;
  EXPECT_EQ(ChatClient(gateway.address()).ModelName(&refused).status(),
            absl::UnauthenticatedError("a key is needed."));
  const ChatAccess access = {.api_key = "of-the-test", .tls = {}};
  EXPECT_EQ(ChatClient(gateway.address(), access).ModelName(&answered).value(),
            "model");
}

}  // namespace
}  // namespace lockstep
