#include "frontend/tokenizer_watch.h"

#include <absl/strings/str_cat.h>
#include <absl/synchronization/mutex.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>

#include "common/grpc_server.h"
#include "proto/tokenizer.grpc.pb.h"

namespace lockstep {
namespace {

std::unique_ptr<GrpcServer> Serve(const std::string& listen,
                                  grpc::Service* service) {
  auto server = GrpcServer::Start(listen, "listen", {service},
                                  {v1::Tokenizer::service_full_name()});
  EXPECT_TRUE(server.ok()) << server.status();
  return *std::move(server);
}

// Says of itself only what vocabulary it has.
class FakeService : public v1::Tokenizer::Service {
 public:
  explicit FakeService(const Digest& vocabulary) : vocabulary_(vocabulary) {}

  grpc::Status GetTokenizerInfo(grpc::ServerContext* /*context*/,
                                const v1::GetTokenizerInfoRequest* /*request*/,
                                v1::TokenizerInfo* response) override {
    response->set_vocabulary_digest(
        std::string(vocabulary_.begin(), vocabulary_.end()));
    return grpc::Status::OK;
  }

 private:
  const Digest vocabulary_;
};

// Not ready is an UNAVAILABLE that says this.
void AwaitStatus(const TokenizerWatch& watch, const absl::Status& status) {
  while (watch.status() != status) std::this_thread::yield();
}

TEST(TokenizerWatch, AServiceThatCameBackWithAnotherVocabularyIsNotReady) {
  FakeService service(Digest{1}), other(Digest{2});
  auto server = Serve("127.0.0.1:0", &service);
  server->SetServing(true);
  const std::string address = absl::StrCat("127.0.0.1:", server->port());
  TokenizerWatch watch(address, Digest{1});
  watch.Start([] {});
  server->Shutdown(/*grace_ms=*/0);
  server = Serve(address, &other);
  server->SetServing(true);
  AwaitStatus(watch, absl::UnavailableError(absl::StrCat(
                         "the tokenizer service at ", address,
                         " has another vocabulary than it had; start the "
                         "gateway again.")));
  server->Shutdown(/*grace_ms=*/0);
  server = Serve(address, &service);
  server->SetServing(true);
  AwaitStatus(watch, absl::OkStatus());
  watch.Stop();
  server->Shutdown(/*grace_ms=*/0);
}

TEST(TokenizerWatch, FollowsAServiceThatGoesAndIsBack) {
  FakeService service(Digest{1});
  auto server = Serve("127.0.0.1:0", &service);
  server->SetServing(true);
  const std::string address = absl::StrCat("127.0.0.1:", server->port());
  absl::Mutex mutex;
  absl::Status last;
  TokenizerWatch watch(address, Digest{1});
  EXPECT_TRUE(watch.status().ok());
  watch.Start([&] {
    absl::MutexLock lock(&mutex);
    last = watch.status();
  });
  const auto await = [&](bool ok) {
    const auto is_so = [&] { return last.ok() == ok; };
    absl::MutexLock lock(&mutex);
    mutex.Await(absl::Condition(&is_so));
  };
  server->SetServing(false);
  await(false);
  EXPECT_EQ(watch.status(), absl::UnavailableError(absl::StrCat(
                                "the tokenizer service at ", address,
                                " is not ready: it is starting or leaving.")));
  server->SetServing(true);
  await(true);
  server->Shutdown(/*grace_ms=*/0);
  server = nullptr;
  await(false);
  server = Serve(address, &service);
  server->SetServing(true);
  await(true);
  watch.Stop();
  server->Shutdown(/*grace_ms=*/0);
}

TEST(TokenizerWatch, StopsWhileItCanNotConnect) {
  TokenizerWatch watch("127.0.0.1:1", Digest{});
  watch.Start([] {});
  watch.Stop();
}

}  // namespace
}  // namespace lockstep
