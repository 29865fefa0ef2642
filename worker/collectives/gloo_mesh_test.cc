#include "worker/collectives/gloo_mesh.h"

#include <absl/time/time.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <thread>

namespace lockstep {
namespace {

using ::testing::HasSubstr;

// Of two ranks Gloo makes the one with the lesser address listen.
constexpr char kLesserHost[] = "127.0.0.1";
constexpr char kGreaterHost[] = "127.0.0.2";

std::unique_ptr<GlooMesh> Listen(
    int rank, absl::Duration connect_timeout = absl::Seconds(60)) {
  auto mesh = GlooMesh::Listen({.host = rank == 0 ? kLesserHost : kGreaterHost,
                                .rank = rank,
                                .size = 2,
                                .max_message_bytes = 64,
                                .outgoing_bytes = 64,
                                .connect_timeout = connect_timeout});
  EXPECT_TRUE(mesh.ok()) << mesh.status();
  return *std::move(mesh);
}

std::multiset<std::string> ThreadNames() {
  std::multiset<std::string> names;
  for (const auto& task :
       std::filesystem::directory_iterator("/proc/self/task")) {
    std::ifstream file(task.path() / "comm");
    std::string name;
    std::getline(file, name);
    names.insert(name);
  }
  return names;
}

TEST(GlooMesh, AnAddressThatIsNotThisHostsIsNamed) {
  // Reserved for documentation: no host has it.
  const auto mesh = GlooMesh::Listen({.host = "192.0.2.1", .size = 2});
  EXPECT_EQ(mesh.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(mesh.status().message()),
              HasSubstr("the collectives cannot listen on 192.0.2.1: "));
}

TEST(GlooMesh, ItsThreadHasAName) {
  // A name the more, and perhaps a sanitizer's own thread, which takes any.
  const size_t before = ThreadNames().count("gloo");
  const auto mesh = Listen(0);
  EXPECT_GT(ThreadNames().count("gloo"), before);
}

TEST(GlooMesh, ARankThatIsGoneBeforeItIsReachedIsNamed) {
  const auto here = Listen(1);
  std::string address;
  {
    const auto gone = Listen(0);
    address = gone->addresses()[1];
  }
  const absl::Status status = here->Connect({address, ""});
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("rank 0 can not be reached for collectives: "));
  EXPECT_EQ(here->Exchange({.bytes = 8}, absl::Seconds(60)), status);
}

TEST(GlooMesh, ARankThatDoesNotConnectIsNamedAfterAWhile) {
  const auto here = Listen(0, absl::Milliseconds(50));
  const auto there = Listen(1);
  const absl::Status status = here->Connect({"", there->addresses()[0]});
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("rank 1 can not be reached for collectives: "));
}

TEST(GlooMesh, AnAbortEndsConnecting) {
  const auto here = Listen(0), there = Listen(1);
  std::thread aborter(
      [&] { here->End(absl::UnavailableError("the leader left")); });
  EXPECT_EQ(here->Connect({"", there->addresses()[0]}),
            absl::UnavailableError("the leader left"));
  aborter.join();
}

// Its message came, and what goes to it is refused or lost, before or after
// Gloo's thread hears that it left.
TEST(GlooMesh, ARankThatLeavesWithAMessageSentIsNotWaitedFor) {
  for (int round = 0; round < 200; ++round) {
    auto here = Listen(0), there = Listen(1);
    std::thread connecting([&, to = there->addresses()[0]] {
      EXPECT_TRUE(here->Connect({"", to}).ok());
    });
    EXPECT_TRUE(there->Connect({here->addresses()[1], ""}).ok());
    connecting.join();
    there->Exchange({.bytes = 8}, absl::Milliseconds(1)).IgnoreError();
    absl::Status status = here->Exchange({.bytes = 8}, absl::Seconds(60));
    if (status.ok()) status = here->Exchange({.bytes = 8}, absl::Seconds(60));
    ASSERT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("rank 1 left: "));
  }
}

TEST(GlooMesh, AnAddressThatIsNoneIsAStatus) {
  const auto here = Listen(0);
  EXPECT_EQ(here->Connect({"", "nonsense"}).code(),
            absl::StatusCode::kUnavailable);
}

}  // namespace
}  // namespace lockstep
