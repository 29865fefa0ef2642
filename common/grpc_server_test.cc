#include "common/grpc_server.h"

#include <absl/strings/str_cat.h>
#include <google/protobuf/descriptor.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>

#include "common/health.grpc.pb.h"
#include "tests/testing/http/raw_connection.h"
#include "tests/testing/reflection_client.h"

namespace lockstep {
namespace {

using grpc::health::v1::HealthCheckResponse;

constexpr char kAnyPort[] = "127.0.0.1:0";

std::shared_ptr<grpc::Channel> Connect(const GrpcServer& server) {
  return grpc::CreateCustomChannel(absl::StrCat("127.0.0.1:", server.port()),
                                   grpc::InsecureChannelCredentials(),
                                   ChannelArguments());
}

HealthCheckResponse::ServingStatus Check(
    const std::shared_ptr<grpc::Channel>& channel, const std::string& service) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() +
                       std::chrono::seconds(10));
  grpc::health::v1::HealthCheckRequest request;
  request.set_service(service);
  HealthCheckResponse response;
  const grpc::Status status = grpc::health::v1::Health::NewStub(channel)->Check(
      &context, request, &response);
  EXPECT_TRUE(status.ok()) << status.error_message();
  return response.status();
}

TEST(GrpcServer, IsNotServingUntilToldSo) {
  auto server = GrpcServer::Start(kAnyPort, "listen", {}, {"some.Service"});
  ASSERT_TRUE(server.ok()) << server.status();
  const auto channel = Connect(**server);
  for (const bool serving : {false, true, false}) {
    if (serving) (*server)->SetServing(true);
    const auto expected = serving ? HealthCheckResponse::SERVING
                                  : HealthCheckResponse::NOT_SERVING;
    EXPECT_EQ(Check(channel, ""), expected);
    EXPECT_EQ(Check(channel, "some.Service"), expected);
    (*server)->SetServing(false);
  }
}

TEST(GrpcServer, ReflectionListsAndDescribesHealth) {
  auto server = GrpcServer::Start(kAnyPort, "listen", {}, {});
  ASSERT_TRUE(server.ok()) << server.status();
  testing::ReflectionClient reflection(Connect(**server));
  const auto services = reflection.ListServices();
  ASSERT_TRUE(services.ok()) << services.status();
  EXPECT_EQ(*services, (std::vector<std::string>{
                           "grpc.health.v1.Health",
                           "grpc.reflection.v1alpha.ServerReflection"}));
  const auto files = reflection.FilesOf("grpc.health.v1.Health");
  ASSERT_TRUE(files.ok()) << files.status();
  ASSERT_EQ(files->size(), 1);
  EXPECT_EQ((*files)[0].service(0).method(0).name(), "Check");
}

// RFC 9113: how a client begins.
constexpr absl::string_view kPreface(
    "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
    "\0\0\0\4\0\0\0\0\0",
    24 + 9);

// The frame of settings that a server begins with, and of it number 3.
TEST(GrpcServer, AConnectionHasABoundOfStreams) {
  auto server = GrpcServer::Start(kAnyPort, "listen", {}, {});
  ASSERT_TRUE(server.ok()) << server.status();
  testing::RawConnection client((*server)->port());
  client.Send(kPreface);
  const std::string at_most_16384("\0\3\0\0\x40\0", 6);
  const std::string begin = client.ReadUntil(at_most_16384);
  EXPECT_NE(begin.find(at_most_16384), begin.npos);
}

// The frame GOAWAY of a server that ends nothing yet: the last stream is any.
TEST(GrpcServer, AnOldConnectionTakesNoNewCalls) {
  auto server =
      GrpcServer::Start(kAnyPort, "listen", {}, {},
                        {.max_connection_age = absl::Milliseconds(50)});
  ASSERT_TRUE(server.ok()) << server.status();
  testing::RawConnection client((*server)->port());
  client.Send(kPreface);
  const std::string goaway("\0\0\x08\7\0\0\0\0\0\x7f\xff\xff\xff", 13);
  EXPECT_NE(client.ReadUntil(goaway).find(goaway), std::string::npos);
}

TEST(GrpcServer, APortInUseIsOneSentenceNamingTheFlag) {
  auto first = GrpcServer::Start(kAnyPort, "listen", {}, {});
  ASSERT_TRUE(first.ok()) << first.status();
  const std::string address = absl::StrCat("127.0.0.1:", (*first)->port());
  EXPECT_EQ(GrpcServer::Start(address, "listen", {}, {}).status(),
            absl::UnavailableError(absl::StrCat(
                "cannot listen on ", address,
                ": the address is in use or not of this host; choose another "
                "with --listen.")));
}

}  // namespace
}  // namespace lockstep
