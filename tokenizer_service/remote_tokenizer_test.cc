#include "tokenizer_service/remote_tokenizer.h"

#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "common/grpc_server.h"
#include "tests/testing/fake_tokenizer.h"
#include "tokenizer_service/service.h"
#include "tokenizer_service/tokenizer_factory.h"

namespace lockstep {
namespace {

// A service of `local`, and a client of it.
class Remote {
 public:
  explicit Remote(const Tokenizer* local)
      : service_(local, {.threads = 2, .queue = {.tasks = 16}}) {
    auto server = GrpcServer::Start("127.0.0.1:0", "listen", {&service_},
                                    {v1::Tokenizer::service_full_name()});
    EXPECT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
    address_ = absl::StrCat("127.0.0.1:", server_->port());
    auto tokenizer = RemoteTokenizer::Connect(address_, absl::Seconds(30));
    EXPECT_TRUE(tokenizer.ok()) << tokenizer.status();
    tokenizer_ = *std::move(tokenizer);
  }

  void Stop() { server_.reset(); }
  const std::string& address() const { return address_; }
  const Tokenizer& operator*() const { return *tokenizer_; }
  const Tokenizer* operator->() const { return tokenizer_.get(); }

 private:
  TokenizerService service_;
  std::unique_ptr<GrpcServer> server_;
  std::string address_;
  std::unique_ptr<RemoteTokenizer> tokenizer_;
};

void ExpectSame(const Tokenizer& remote, const Tokenizer& local) {
  EXPECT_EQ(remote.info().vocabulary_size, local.info().vocabulary_size);
  EXPECT_EQ(remote.info().bos_token_id, local.info().bos_token_id);
  EXPECT_EQ(remote.info().eos_token_ids, local.info().eos_token_ids);
  EXPECT_EQ(remote.info().chat_template, local.info().chat_template);

  const Vocabulary& a = remote.vocabulary();
  const Vocabulary& b = local.vocabulary();
  ASSERT_EQ(a.size(), b.size());
  EXPECT_EQ(a.join(), b.join());
  EXPECT_EQ(a.strip_leading_spaces(), b.strip_leading_spaces());
  for (uint32_t id = 0; id < a.size(); ++id) {
    EXPECT_EQ(a.token(id).bytes, b.token(id).bytes);
    EXPECT_EQ(a.token(id).kind, b.token(id).kind);
    EXPECT_EQ(a.token(id).special, b.token(id).special);
  }

  for (const bool special : {false, true}) {
    const auto ids = remote.Encode("the né <tool_call>", special);
    ASSERT_TRUE(ids.ok()) << ids.status();
    EXPECT_EQ(*ids, *local.Encode("the né <tool_call>", special));
    EXPECT_EQ(*remote.Decode(*ids, special), *local.Decode(*ids, special));
  }
  constexpr absl::string_view kContext =
      R"({"messages": [{"role": "user", "content": "né"}]})";
  EXPECT_EQ(*remote.RenderChat(kContext), *local.RenderChat(kContext));
}

// But for the reason that a service adds for programs.
void ExpectSameError(const absl::Status& a, const absl::Status& b) {
  EXPECT_FALSE(a.ok());
  EXPECT_EQ(a.code(), b.code());
  EXPECT_EQ(a.message(), b.message());
}

TEST(RemoteTokenizer, IsAsTheLocalOne) {
  const FakeTokenizer local;
  ExpectSame(*Remote(&local), local);
}

TEST(RemoteTokenizer, IsAsTheLocalOneWithByteFallback) {
  const auto local = OpenTokenizer("tests/goldens/tokenizers/small");
  ASSERT_TRUE(local.ok()) << local.status();
  ExpectSame(*Remote(local->get()), **local);
}

TEST(RemoteTokenizer, FailsAsTheLocalOne) {
  const FakeTokenizer local(/*has_chat_template=*/false);
  const Remote remote(&local);
  ExpectSameError(remote->RenderChat("{}").status(),
                  local.RenderChat("{}").status());
  ExpectSameError(remote->Encode("\xff", true).status(),
                  local.Encode("\xff", true).status());
  ExpectSameError(remote->Decode({9999}, true).status(),
                  local.Decode({9999}, true).status());
}

TEST(RemoteTokenizer, DecodesWithoutTheService) {
  const FakeTokenizer local;
  Remote remote(&local);
  remote.Stop();
  EXPECT_EQ(*remote->Decode({'h', 'i'}, false), "hi");
  EXPECT_EQ(remote->Encode("hi", false).status().code(),
            absl::StatusCode::kUnavailable);
}

TEST(RemoteTokenizer, NoticesAServiceThatCameBackWithAnotherVocabulary) {
  const FakeTokenizer local;
  const auto other = OpenTokenizer("tests/goldens/tokenizers/small");
  ASSERT_TRUE(other.ok()) << other.status();
  Remote remote(&local);
  const std::string address = remote.address();
  remote.Stop();
  TokenizerService service(other->get(), {.threads = 1, .queue = {.tasks = 1}});
  const auto server = GrpcServer::Start(address, "listen", {&service}, {});
  ASSERT_TRUE(server.ok()) << server.status();
  absl::Status status;
  do {  // until it has connected again
    status = remote->Encode("hi", true).status();
  } while (!absl::StrContains(status.message(), "vocabulary"));
  EXPECT_EQ(status, absl::UnavailableError(absl::StrCat(
                        "the tokenizer service at ", address,
                        " has another vocabulary than it had; start the "
                        "gateway again.")));
}

TEST(RemoteTokenizer, NamesTheAddressThatDoesNotAnswer) {
  // Nothing listens on a port that was free a moment ago.
  const FakeTokenizer local;
  TokenizerService service(&local, {.threads = 1, .queue = {.tasks = 1}});
  auto server = GrpcServer::Start("127.0.0.1:0", "listen", {&service}, {});
  ASSERT_TRUE(server.ok()) << server.status();
  const std::string address = absl::StrCat("127.0.0.1:", (*server)->port());
  server->reset();
  const auto tokenizer =
      RemoteTokenizer::Connect(address, absl::Milliseconds(200));
  EXPECT_EQ(tokenizer.status().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_TRUE(absl::StrContains(tokenizer.status().message(), address));
}

}  // namespace
}  // namespace lockstep
