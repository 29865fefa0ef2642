// Worker, tokenizer service and gateway as processes that know each other by
// certificates and their clients by keys.

#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "common/grpc_server.h"
#include "common/security/grpc_credentials.h"
#include "common/security/tls_identity.h"
#include "proto/inference.grpc.pb.h"
#include "tests/e2e/tiny_model_test_fixture.h"
#include "tests/testing/process.h"
#include "tests/testing/tls/test_ca.h"
#include "tests/testing/tls/tls_connection.h"
#include "tests/testing/write_file.h"

namespace lockstep {
namespace {

using ::lockstep::testing::Issued;
using ::lockstep::testing::Process;
using ::lockstep::testing::TestCa;
using ::lockstep::testing::TinyModelTest;
using ::lockstep::testing::TlsConnection;
using ::lockstep::testing::WriteFile;

constexpr char kKey[] = "key-of-alice-0123456789";
constexpr char kPrompt[] = "Wandering albatrosses never pay their taxes";

class SecurityTest : public TinyModelTest {
 protected:
  static std::string Path(const std::string& name) {
    return ::testing::TempDir() + name;
  }

  static void WritePair(const std::string& name, const Issued& issued) {
    WriteFile(Path(name + ".pem"), issued.certificate);
    WriteFile(Path(name + ".key"), issued.key);
  }

  // A server's, whose clients must be known.
  static std::vector<std::string> ServerFlags(const std::string& name) {
    return {absl::StrCat("--tls_certificate=", Path(name + ".pem")),
            absl::StrCat("--tls_key=", Path(name + ".key")),
            absl::StrCat("--tls_client_ca=", Path("ca.pem"))};
  }

  // As much in the log as there can be.
  static std::unique_ptr<Process> Start(const std::string& binary,
                                        std::vector<std::string> flags,
                                        const std::vector<std::string>& more) {
    flags.insert(flags.end(), more.begin(), more.end());
    flags.push_back("--listen=127.0.0.1:0");
    auto process = Process::Start(binary, flags, {{"GLOG_v", "9"}});
    EXPECT_TRUE(process.ok()) << process.status();
    return *std::move(process);
  }

  static std::string AddressOf(Process& process) {
    const auto port = process.WaitForPort(kTimeout);
    EXPECT_TRUE(port.ok()) << port.status();
    return absl::StrCat("127.0.0.1:", port.value_or(0));
  }

  void StartAll() {
    WriteFile(Path("ca.pem"), ca_.certificate());
    WriteFile(Path("keys"), absl::StrCat("alice ", kKey, "\n"));
    for (const char* name : {"worker", "tokenizer", "gateway", "client"}) {
      WritePair(name, ca_.Issue({.name = name}));
    }
    worker_ =
        Start("worker/worker", ServerFlags("worker"),
              {absl::StrCat("--model=", ModelPath()),
               "--served_model_name=tiny", "--threads=1", "--num_pages=4096"});
    tokenizer_ = Start("tokenizer_service/tokenizer", ServerFlags("tokenizer"),
                       {absl::StrCat("--model=", ModelPath())});
    const std::string workers = AddressOf(*worker_);
    const std::string tokenizer = AddressOf(*tokenizer_);
    gateway_ =
        Start("frontend/gateway", ServerFlags("gateway"),
              {absl::StrCat("--workers=", workers),
               absl::StrCat("--worker_tls_ca=", Path("ca.pem")),
               "--worker_tls_name=worker",
               absl::StrCat("--tokenizer_address=", tokenizer),
               absl::StrCat("--tokenizer_tls_ca=", Path("ca.pem")),
               absl::StrCat("--client_tls_certificate=", Path("gateway.pem")),
               absl::StrCat("--client_tls_key=", Path("gateway.key")),
               absl::StrCat("--api_keys_file=", Path("keys")),
               "--http_listen=127.0.0.1:0"});
    address_ = AddressOf(*gateway_);
    const auto line = gateway_->WaitForLine("gateway: HTTP on ", kTimeout);
    ASSERT_TRUE(line.ok()) << line.status();
    http_port_ = std::stoi(line->substr(line->rfind(':') + 1));
    auto identity =
        TlsIdentity::Start({.certificate = {"certificate", Path("client.pem")},
                            .key = {"key", Path("client.key")},
                            .ca = {"ca", Path("ca.pem")}});
    ASSERT_TRUE(identity.ok()) << identity.status();
    client_ = std::make_unique<SecureChannel>(
        address_, ChannelArguments(), ClientTls{*std::move(identity), ""});
    stub_ = v1::Inference::NewStub(client_->Get());
  }

  static std::unique_ptr<grpc::ClientContext> WithKey() {
    auto context = std::make_unique<grpc::ClientContext>();
    context->AddMetadata("authorization", absl::StrCat("Bearer ", kKey));
    return context;
  }

  static v1::GenerateRequest Request(uint32_t max_tokens) {
    v1::GenerateRequest request;
    request.set_text(kPrompt);
    request.mutable_sampling()->set_temperature(0);
    request.mutable_sampling()->set_max_tokens(max_tokens);
    request.mutable_sampling()->set_ignore_eos(true);
    return request;
  }

  grpc::Status Generate(const v1::GenerateRequest& request) {
    const auto context = WithKey();
    const auto stream = stub_->Generate(context.get(), request);
    v1::GenerateResponse event;
    while (stream->Read(&event)) continue;
    return stream->Finish();
  }

  // The status of an answer over HTTPS.
  int Post(const std::string& path, const std::string& body,
           const std::string& key = kKey) {
    TlsConnection client(http_port_, {.ca = ca_.certificate(),
                                      .own = ca_.Issue({.name = "client"})});
    EXPECT_EQ(client.error(), "");
    client.Send(absl::StrCat(
        "POST ", path, " HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ", key,
        "\r\ncontent-type: application/json\r\n",
        "content-length: ", body.size(), "\r\n\r\n", body));
    return client.Read().status;
  }

  const TestCa ca_{"ours"};
  std::unique_ptr<Process> worker_, tokenizer_, gateway_;
  std::string address_;
  int http_port_ = 0;
  std::unique_ptr<SecureChannel> client_;
  std::unique_ptr<v1::Inference::Stub> stub_;
};

TEST_F(SecurityTest, PromptsAndKeysAreInNoLog) {
  ASSERT_NO_FATAL_FAILURE(StartAll());
  const std::string text = absl::StrCat("\"", kPrompt, "\"");
  const std::string chat =
      absl::StrCat(R"("messages":[{"role":"user","content":)", text, "}]");
  EXPECT_EQ(Post("/v1/completions",
                 absl::StrCat("{\"prompt\":", text, ",\"max_tokens\":4}")),
            200);
  EXPECT_EQ(Post("/v1/completions", absl::StrCat("{\"stream\":true,\"prompt\":",
                                                 text, ",\"max_tokens\":4}")),
            200);
  EXPECT_EQ(Post("/tokenize", absl::StrCat("{\"prompt\":", text, "}")), 200);
  EXPECT_EQ(Post("/v1/chat/completions",
                 absl::StrCat("{", chat, ",\"temperature\":-1}")),
            400);
  // In places where an error quotes what is wrong.
  EXPECT_EQ(Post("/v1/completions",
                 absl::StrCat("{\"prompt\":\"a\",\"model\":", text, "}")),
            404);
  EXPECT_EQ(Post("/v1/completions", absl::StrCat("{\"prompt\":", text, ",")),
            400);
  EXPECT_EQ(Post("/v1/completions", "{}", "a-guess-of-a-key-987654"), 401);
  EXPECT_TRUE(Generate(Request(4)).ok());
  v1::GenerateRequest wrong = Request(4);
  wrong.set_model(kPrompt);
  EXPECT_EQ(Generate(wrong).error_code(), grpc::StatusCode::NOT_FOUND);

  const std::string log = gateway_->output();
  EXPECT_TRUE(absl::StrContains(log, " key=alice status=OK")) << log;
  for (Process* process : {worker_.get(), tokenizer_.get(), gateway_.get()}) {
    const std::string output = process->output();
    EXPECT_FALSE(output.empty());
    for (const char* secret :
         {"albatrosses", kKey, "a-guess-of-a-key", "PRIVATE KEY"}) {
      EXPECT_FALSE(absl::StrContains(output, secret)) << secret;
    }
  }
}

TEST_F(SecurityTest, StrangersAreRefusedAtEveryPort) {
  ASSERT_NO_FATAL_FAILURE(StartAll());
  EXPECT_TRUE(Generate(Request(1)).ok());
  grpc::ClientContext without_key;
  v1::ListModelsResponse models;
  EXPECT_EQ(stub_->ListModels(&without_key, {}, &models).error_code(),
            grpc::StatusCode::UNAUTHENTICATED);
  for (Process* process : {worker_.get(), tokenizer_.get(), gateway_.get()}) {
    const int port = process->WaitForPort(kTimeout).value();
    TlsConnection known(port, {.ca = ca_.certificate(),
                               .own = ca_.Issue({}),
                               .alpn = "h2",
                               .most_version = TLS1_2_VERSION});
    EXPECT_EQ(known.error(), "");
    EXPECT_EQ(known.alpn(), "h2");
    EXPECT_NE(TlsConnection(port, {.own = TestCa("other").Issue({}),
                                   .alpn = "h2",
                                   .most_version = TLS1_2_VERSION})
                  .error(),
              "");
    EXPECT_NE(
        TlsConnection(port, {.alpn = "h2", .most_version = TLS1_2_VERSION})
            .error(),
        "");
  }
}

TEST_F(SecurityTest, NoStreamIsLostWhileCertificatesAndKeysAreReplaced) {
  ASSERT_NO_FATAL_FAILURE(StartAll());
  std::atomic<bool> stopping = false;
  std::atomic<int> streams = 0;
  std::vector<std::thread> traffic;
  for (int i = 0; i < 2; ++i) {
    traffic.emplace_back([&] {
      while (!stopping) {
        const grpc::Status status = Generate(Request(500));
        EXPECT_TRUE(status.ok()) << status.error_message();
        ++streams;
      }
    });
  }
  const auto await_streams = [&](int more) {
    for (const int until = streams + more; streams < until;) {
      std::this_thread::yield();
    }
  };
  await_streams(2);

  WritePair("gateway", ca_.Issue({.name = "gateway-2"}));
  WritePair("worker", ca_.Issue({.name = "worker"}));
  WriteFile(Path("keys"),
            absl::StrCat("bob key-of-bob-0123456789\n", "alice ", kKey, "\n"));
  const auto shown = [&](int port) {
    return TlsConnection(port, {.ca = ca_.certificate(),
                                .own = ca_.Issue({}),
                                .most_version = TLS1_2_VERSION})
        .server_name();
  };
  for (const int port : {http_port_, gateway_->WaitForPort(kTimeout).value()}) {
    while (shown(port) != "gateway-2") await_streams(1);
  }
  while (Post("/v1/completions", R"({"prompt":"a","max_tokens":1})",
              "key-of-bob-0123456789") != 200) {
    await_streams(1);
  }
  // On a new connection to the worker, too.
  await_streams(4);
  stopping = true;
  for (std::thread& thread : traffic) thread.join();
}

TEST_F(SecurityTest, ABadCertificateIsOneSentenceAtTheStart) {
  WriteFile(Path("bad.pem"), "nothing");
  WriteFile(Path("bad.key"), "nothing");
  const std::string flag = absl::StrCat("--tls_certificate=", Path("bad.pem"));
  const std::string sentence =
      absl::StrCat("--tls_certificate is \"", Path("bad.pem"),
                   "\", which holds no PEM certificate.");
  for (const char* binary :
       {"frontend/gateway", "worker/worker", "tokenizer_service/tokenizer"}) {
    const auto process =
        Start(binary, {flag, absl::StrCat("--tls_key=", Path("bad.key"))},
              {absl::StrCat("--model=", ModelPath())});
    EXPECT_EQ(process->WaitForExit(kTimeout).value(), 1) << binary;
    EXPECT_TRUE(absl::StrContains(process->output(), sentence))
        << process->output();
  }
}

}  // namespace
}  // namespace lockstep
