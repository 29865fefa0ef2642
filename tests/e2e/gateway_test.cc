// The gateway, the worker, the tokenizer and the chat as processes, on ports
// the system chooses, with a random model that is made here.

#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <absl/time/time.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <pwd.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "common/grpc_server.h"
#include "common/health.grpc.pb.h"
#include "proto/inference.grpc.pb.h"
#include "proto/worker.grpc.pb.h"
#include "tests/testing/process.h"
#include "tests/testing/reflection_client.h"
#include "tests/testing/tiny_gguf.h"
#include "tests/testing/tiny_model.h"

namespace lockstep {
namespace {

using ::grpc::health::v1::HealthCheckResponse;
using ::lockstep::testing::Process;
using ::lockstep::testing::ReflectionClient;

constexpr absl::Duration kTimeout = absl::Seconds(60);
// Of a request that is meant to be cut short: seconds of work.
constexpr int kEndlessTokens = 60'000;

std::shared_ptr<grpc::Channel> Connect(const std::string& address) {
  return grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(),
                                   ChannelArguments());
}

// The path of grpcurl, empty where it is not installed.
std::string FindGrpcurl() {
  const passwd* user = getpwuid(getuid());
  const std::string home = user == nullptr ? "" : user->pw_dir;
  for (const std::string& folder :
       {home + "/go/bin", std::string("/usr/local/bin"),
        std::string("/usr/bin")}) {
    const std::string path = folder + "/grpcurl";
    if (access(path.c_str(), X_OK) == 0) return path;
  }
  return "";
}

class EndToEndTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    testing::TinyModel model;
    model.max_context = kEndlessTokens + 1000;
    testing::WriteGguf(model, ModelPath());
  }

  static std::string ModelPath() {
    return ::testing::TempDir() + "tiny-model.gguf";
  }

  void StartWorker(const std::string& listen = "127.0.0.1:0") {
    auto worker = Process::Start(
        "worker/worker",
        {absl::StrCat("--model=", ModelPath()), "--served_model_name=tiny",
         absl::StrCat("--listen=", listen), "--threads=1", "--num_pages=4096"});
    ASSERT_TRUE(worker.ok()) << worker.status();
    worker_ = *std::move(worker);
    const auto port = worker_->WaitForPort(kTimeout);
    ASSERT_TRUE(port.ok()) << port.status();
    worker_address_ = absl::StrCat("127.0.0.1:", *port);
  }

  void StartGateway(const std::string& tokenizer_flag) {
    auto gateway =
        Process::Start("frontend/gateway",
                       {tokenizer_flag, "--listen=127.0.0.1:0",
                        absl::StrCat("--worker_address=", worker_address_)});
    ASSERT_TRUE(gateway.ok()) << gateway.status();
    gateway_ = *std::move(gateway);
    const auto port = gateway_->WaitForPort(kTimeout);
    ASSERT_TRUE(port.ok()) << port.status();
    address_ = absl::StrCat("127.0.0.1:", *port);
    channel_ = Connect(address_);
    stub_ = v1::Inference::NewStub(channel_);
  }

  void StartBoth() {
    ASSERT_NO_FATAL_FAILURE(StartWorker());
    ASSERT_NO_FATAL_FAILURE(
        StartGateway(absl::StrCat("--model=", ModelPath())));
  }

  static v1::GenerateRequest Request(int max_tokens) {
    v1::GenerateRequest request;
    request.set_text("The capital");
    request.mutable_sampling()->set_temperature(0);
    request.mutable_sampling()->set_max_tokens(max_tokens);
    request.mutable_sampling()->set_ignore_eos(true);
    return request;
  }

  // All events of an answer that ends well.
  std::vector<v1::GenerateResponse> Generate(
      const v1::GenerateRequest& request) {
    grpc::ClientContext context;
    const auto stream = stub_->Generate(&context, request);
    std::vector<v1::GenerateResponse> events;
    v1::GenerateResponse event;
    while (stream->Read(&event)) events.push_back(event);
    const grpc::Status status = stream->Finish();
    EXPECT_TRUE(status.ok()) << status.error_message();
    return events;
  }

  // Follows the health of the server behind a channel up to a status.
  static void WaitForHealth(const std::shared_ptr<grpc::Channel>& channel,
                            const std::string& service,
                            HealthCheckResponse::ServingStatus status) {
    grpc::ClientContext context;
    grpc::health::v1::HealthCheckRequest request;
    request.set_service(service);
    const auto stream =
        grpc::health::v1::Health::NewStub(channel)->Watch(&context, request);
    HealthCheckResponse health;
    while (stream->Read(&health) && health.status() != status) continue;
    EXPECT_EQ(health.status(), status);
    context.TryCancel();
    stream->Finish();
  }

  // Follows the worker's load until `done`; its last one.
  template <typename Predicate>
  v1::Load WaitForLoad(const Predicate& done) {
    grpc::ClientContext context;
    v1::WatchLoadRequest request;
    request.set_interval_ms(10);
    const auto worker = v1::Worker::NewStub(Connect(worker_address_));
    const auto stream = worker->WatchLoad(&context, request);
    v1::Load load;
    while (stream->Read(&load) && !done(load)) continue;
    context.TryCancel();
    stream->Finish();
    return load;
  }

  // Nothing runs, waits or holds a page; well before the request's own end.
  void ExpectIdleSoon() {
    const v1::Load load = WaitForLoad([](const v1::Load& load) {
      return load.running_sequences() == 0 && load.waiting_sequences() == 0;
    });
    EXPECT_EQ(load.free_pages() + load.cached_pages(), load.total_pages());
    EXPECT_LT(load.step(), kEndlessTokens);
  }

  std::string worker_address_;
  std::string address_;  // of the gateway
  std::unique_ptr<Process> worker_;
  std::unique_ptr<Process> gateway_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::Inference::Stub> stub_;
};

TEST_F(EndToEndTest, ListsDescribesAndGenerates) {
  ASSERT_NO_FATAL_FAILURE(StartBoth());
  ReflectionClient reflection(channel_);
  const auto services = reflection.ListServices();
  ASSERT_TRUE(services.ok()) << services.status();
  EXPECT_EQ(*services, (std::vector<std::string>{
                           "grpc.health.v1.Health",
                           "grpc.reflection.v1alpha.ServerReflection",
                           "lockstep.v1.Inference"}));
  const auto files = reflection.FilesOf("lockstep.v1.Inference");
  ASSERT_TRUE(files.ok()) << files.status();
  EXPECT_EQ(files->size(), 2);  // with sampling.proto, which it imports

  WaitForHealth(channel_, "lockstep.v1.Inference",
                HealthCheckResponse::SERVING);
  WaitForHealth(Connect(worker_address_), "lockstep.v1.Worker",
                HealthCheckResponse::SERVING);

  const auto events = Generate(Request(/*max_tokens=*/8));
  ASSERT_GE(events.size(), 4);
  EXPECT_TRUE(events.front().has_accepted());
  EXPECT_EQ(events.front().accepted().model(), "tiny");
  EXPECT_TRUE(events.back().has_summary());
  EXPECT_EQ(events.back().summary().usage().completion_tokens(), 8);
}

TEST_F(EndToEndTest, AStreamsTextIsTheTextOfItsIds) {
  ASSERT_NO_FATAL_FAILURE(StartBoth());
  std::string text;
  v1::DetokenizeRequest ids;
  for (const auto& event : Generate(Request(/*max_tokens=*/100))) {
    text += event.delta().text();
    ids.mutable_token_ids()->MergeFrom(event.delta().token_ids());
  }
  EXPECT_EQ(ids.token_ids_size(), 100);
  grpc::ClientContext context;
  v1::DetokenizeResponse whole;
  ASSERT_TRUE(stub_->Detokenize(&context, ids, &whole).ok());
  EXPECT_EQ(text, whole.text());

  // A piece of it as a stop string.
  const size_t at = text.size() / 2;
  v1::GenerateRequest request = Request(kEndlessTokens);
  size_t start = at;
  while ((text[start] & 0xc0) == 0x80) --start;
  size_t end = start + 1;
  while ((text[end] & 0xc0) == 0x80) ++end;
  const std::string stop = text.substr(start, end - start);
  request.add_stop(stop);
  std::string stopped;
  const auto events = Generate(request);
  for (const auto& event : events) stopped += event.delta().text();
  EXPECT_EQ(stopped, text.substr(0, text.find(stop)));
  ASSERT_GE(events.size(), 2);
  EXPECT_EQ(events[events.size() - 2].finish().stop_string(), stop);
  ExpectIdleSoon();
}

TEST_F(EndToEndTest, WhatTheWorkerRefusesReachesTheClientAsItIs) {
  ASSERT_NO_FATAL_FAILURE(StartBoth());
  v1::GenerateRequest request = Request(8);
  request.mutable_sampling()->set_temperature(-1);
  grpc::ClientContext context;
  const auto stream = stub_->Generate(&context, request);
  v1::GenerateResponse event;
  EXPECT_FALSE(stream->Read(&event));
  const grpc::Status status = stream->Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_TRUE(absl::StrContains(status.error_message(), "temperature"))
      << status.error_message();
}

TEST_F(EndToEndTest, HangingUpFreesThePages) {
  ASSERT_NO_FATAL_FAILURE(StartBoth());
  {
    grpc::ClientContext context;
    const auto stream = stub_->Generate(&context, Request(kEndlessTokens));
    v1::GenerateResponse event;
    while (stream->Read(&event) && !event.has_delta()) continue;
    context.TryCancel();
    EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::CANCELLED);
  }
  ExpectIdleSoon();
}

TEST_F(EndToEndTest, Grpcurl) {
  const std::string grpcurl = FindGrpcurl();
  if (grpcurl.empty()) return;  // Go is not everywhere
  ASSERT_NO_FATAL_FAILURE(StartBoth());
  const auto run = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "-plaintext");
    return *Process::Start(grpcurl, arguments);
  };

  auto list = run({address_, "list"});
  EXPECT_EQ(list->WaitForExit(kTimeout).value_or(-1), 0) << list->output();
  EXPECT_TRUE(absl::StrContains(list->output(), "lockstep.v1.Inference"));

  auto describe = run({address_, "describe", "lockstep.v1.Inference.Generate"});
  EXPECT_EQ(describe->WaitForExit(kTimeout).value_or(-1), 0);
  EXPECT_TRUE(
      absl::StrContains(describe->output(), "returns ( stream .lockstep.v1."))
      << describe->output();

  auto health = run({"-d", R"({"service":"lockstep.v1.Inference"})", address_,
                     "grpc.health.v1.Health/Check"});
  EXPECT_EQ(health->WaitForExit(kTimeout).value_or(-1), 0);
  EXPECT_TRUE(absl::StrContains(health->output(), "\"SERVING\""))
      << health->output();

  auto generate = run(
      {"-d",
       R"({"text":"The capital","sampling":{"temperature":0,"max_tokens":4}})",
       address_, "lockstep.v1.Inference/Generate"});
  EXPECT_EQ(generate->WaitForExit(kTimeout).value_or(-1), 0);
  EXPECT_TRUE(absl::StrContains(generate->output(), "\"summary\""))
      << generate->output();

  auto endless =
      run({"-d",
           absl::StrCat(R"({"text":"The","sampling":{"ignore_eos":true,)",
                        R"("max_tokens":)", kEndlessTokens, "}}"),
           address_, "lockstep.v1.Inference/Generate"});
  ASSERT_TRUE(endless->WaitForLine("\"delta\"", kTimeout).ok());
  endless->Signal(SIGINT);
  EXPECT_TRUE(endless->WaitForExit(kTimeout).ok());
  ExpectIdleSoon();
}

TEST_F(EndToEndTest, AWorkerThatIsKilledEndsItsStreamsAndIsFoundAgain) {
  ASSERT_NO_FATAL_FAILURE(StartBoth());
  grpc::ClientContext context;
  const auto stream = stub_->Generate(&context, Request(kEndlessTokens));
  v1::GenerateResponse event;
  while (stream->Read(&event) && !event.has_delta()) continue;
  worker_->Signal(SIGKILL);
  while (stream->Read(&event)) continue;
  const grpc::Status status = stream->Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_TRUE(absl::StrContains(status.error_message(), worker_address_))
      << status.error_message();
  WaitForHealth(channel_, "lockstep.v1.Inference",
                HealthCheckResponse::NOT_SERVING);

  ASSERT_NO_FATAL_FAILURE(StartWorker(worker_address_));
  WaitForHealth(channel_, "lockstep.v1.Inference",
                HealthCheckResponse::SERVING);
  EXPECT_TRUE(Generate(Request(4)).back().has_summary());
}

TEST_F(EndToEndTest, TheTokenizerServiceGivesTheSameText) {
  ASSERT_NO_FATAL_FAILURE(StartBoth());
  const auto text = [this] {
    std::string result;
    for (const auto& event : Generate(Request(50))) {
      result += event.delta().text();
    }
    return result;
  };
  const std::string in_process = text();
  auto tokenizer = *Process::Start(
      "tokenizer_service/tokenizer",
      {absl::StrCat("--model=", ModelPath()), "--listen=127.0.0.1:0"});
  const auto port = tokenizer->WaitForPort(kTimeout);
  ASSERT_TRUE(port.ok()) << port.status();
  ASSERT_NO_FATAL_FAILURE(
      StartGateway(absl::StrCat("--tokenizer_address=127.0.0.1:", *port)));
  EXPECT_EQ(text(), in_process);
}

TEST_F(EndToEndTest, SigtermLetsAnAnswerEndAndExitsWithZero) {
  ASSERT_NO_FATAL_FAILURE(StartBoth());
  grpc::ClientContext context;
  const auto stream = stub_->Generate(&context, Request(/*max_tokens=*/500));
  v1::GenerateResponse event;
  ASSERT_TRUE(stream->Read(&event));
  gateway_->Signal(SIGTERM);
  while (stream->Read(&event)) continue;
  EXPECT_TRUE(stream->Finish().ok());
  EXPECT_TRUE(event.has_summary());
  EXPECT_EQ(gateway_->WaitForExit(kTimeout).value_or(-1), 0);
  worker_->Signal(SIGTERM);
  EXPECT_EQ(worker_->WaitForExit(kTimeout).value_or(-1), 0);
}

TEST_F(EndToEndTest, ChatsThroughAPipe) {
  ASSERT_NO_FATAL_FAILURE(StartBoth());
  const auto chat = [this](const std::string& lines) {
    return *Process::Start(
        "/bin/sh",
        {"-c", absl::StrCat("printf '", lines, "' | ", getenv("TEST_SRCDIR"),
                            "/", getenv("TEST_WORKSPACE"),
                            "/frontend/chat/chat --temperature=0 "
                            "--max_tokens=8 --server=",
                            address_)});
  };
  auto good = chat("hello\\nand more\\n");
  EXPECT_EQ(good->WaitForExit(kTimeout).value_or(-1), 0) << good->output();
  EXPECT_FALSE(good->output().empty());
  EXPECT_FALSE(absl::StrContains(good->output(), "\033"));

  auto commands = chat("/nope\\n/exit\\nnever sent\\n");
  EXPECT_EQ(commands->WaitForExit(kTimeout).value_or(-1), 0);
  EXPECT_EQ(commands->output(),
            "There is no command /nope; /help lists them.\n");

  gateway_->Signal(SIGTERM);
  EXPECT_EQ(gateway_->WaitForExit(kTimeout).value_or(-1), 0);
  auto alone = chat("hello\\n");
  EXPECT_EQ(alone->WaitForExit(kTimeout).value_or(-1), 1);
  EXPECT_EQ(alone->output(),
            absl::StrCat("There is no gateway at ", address_,
                         "; start one with ./lockstep up, or name another "
                         "with --server.\n"));
}

TEST_F(EndToEndTest, SaysInOneSentenceWhyItDoesNotStart) {
  const struct {
    std::vector<std::string> arguments;
    std::string error;
  } kCases[] = {
      {{}, "gateway: --model is not set; name the worker's model"},
      {{"--model=/nowhere"}, "gateway: "},
      {{absl::StrCat("--model=", ModelPath()), "--listen=nowhere"},
       "gateway: --listen is \"nowhere\""},
      {{"--model=m", "extra"}, "gateway: \"extra\" is no flag"},
  };
  for (const auto& c : kCases) {
    const auto process = Process::Start("frontend/gateway", c.arguments);
    ASSERT_TRUE(process.ok()) << process.status();
    EXPECT_EQ((*process)->WaitForExit(kTimeout).value_or(-1), 1);
    EXPECT_TRUE(absl::StrContains((*process)->output(), c.error))
        << (*process)->output();
  }
}

}  // namespace
}  // namespace lockstep
