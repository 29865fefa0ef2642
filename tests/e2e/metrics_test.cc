// What Prometheus gets of a group of two ranks and of a gateway, as processes.

#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include <csignal>
#include <map>
#include <string>

#include "tests/e2e/worker_test_fixture.h"
#include "tests/testing/http/raw_connection.h"
#include "tests/testing/http/scraped.h"
#include "tests/testing/process.h"

namespace lockstep {
namespace {

using ::lockstep::testing::Fetch;
using ::lockstep::testing::Process;
using ::lockstep::testing::Scraped;
using ::lockstep::testing::WorkerTest;
using ::testing::Contains;
using ::testing::Ge;
using ::testing::Gt;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;
using ::testing::Pair;

// That nobody listens on. --metrics_port can not be told to find one.
int FreePort() {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  socklen_t size = sizeof(address);
  EXPECT_EQ(bind(fd, reinterpret_cast<sockaddr*>(&address), size), 0);
  getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size);
  close(fd);
  return ntohs(address.sin_port);
}

class MetricsTest : public WorkerTest {
 protected:
  std::map<std::string, double> Scrape() {
    const auto response = Fetch(port_, "/metrics");
    EXPECT_EQ(response.status, 200);
    EXPECT_THAT(response.Field("content-type"), HasSubstr("text/plain"));
    return Scraped(response.body);
  }
  void Await(const std::string& name, double value) {
    while (Scrape()[name] < value) sched_yield();
  }

  const int port_ = FreePort();
};

TEST_F(MetricsTest, AGroupTellsWhatItsRequestsWereLike) {
  constexpr int kTokens = 20;
  Group group(2, {absl::StrCat("--metrics_port=", port_)});
  Call call(*group.stub, Request(kTokens));
  ASSERT_TRUE(call.ReadToEnd().ok());
  Await(R"(lockstep_worker_requests_total{outcome="completed"})", 1);
  Await(R"(lockstep_worker_heartbeats_total{rank="0",peer="1"})", 1);
  const auto scraped = Scrape();
  const auto of_model = [](absl::string_view name) {
    return absl::StrCat("vllm:", name, R"({model_name="tiny",engine="0"})");
  };
  EXPECT_THAT(
      scraped,
      IsSupersetOf(std::map<std::string, double>{
          {of_model("num_requests_running"), 0},
          {of_model("num_requests_waiting"), 0},
          {of_model("num_preemptions_total"), 0},
          {of_model("generation_tokens_total"), kTokens},
          {of_model("time_to_first_token_seconds_count"), 1},
          {of_model("inter_token_latency_seconds_count"), kTokens - 1},
          {of_model("request_queue_time_seconds_count"), 1},
          {of_model("e2e_request_latency_seconds_count"), 1},
          {of_model("request_generation_tokens_sum"), kTokens},
          {R"(vllm:request_success_total{model_name="tiny",engine="0",finished_reason="length"})",
           1},
          {R"(lockstep_build_info{program="worker",version="0.1.0"})", 1},
          {"lockstep_ready", 1},
          {"lockstep_worker_ranks", 2},
          {"lockstep_worker_open_streams", 0},
          {R"(lockstep_worker_kv_pages{state="held"})", 0},
      }));
  // Of the warm-up, too.
  EXPECT_THAT(scraped,
              Contains(Pair(R"(lockstep_worker_step_seconds_count{rank="0"})",
                            Gt(kTokens))));
  EXPECT_THAT(scraped,
              Contains(Pair(R"(lockstep_worker_digest_checks_total{rank="0"})",
                            Gt(kTokens))));
  EXPECT_THAT(
      scraped,
      Contains(Pair(
          R"(lockstep_worker_collectives_total{rank="0",kind="all_gather"})",
          Ge(kTokens))));
  const double total = scraped.at(
      R"(lockstep_worker_step_stage_seconds_total{rank="0",stage="executes"})");
  EXPECT_GT(total, 0);
  EXPECT_LE(total, scraped.at(R"(lockstep_worker_step_seconds_sum{rank="0"})"));
}

TEST_F(MetricsTest, APortInUseIsNamed) {
  Group group(1, {absl::StrCat("--metrics_port=", port_)});
  auto second = *Process::Start(
      kWorker, {absl::StrCat("--model=", ModelPath()), "--listen=127.0.0.1:0",
                absl::StrCat("--metrics_port=", port_)});
  EXPECT_EQ(second->WaitForExit(kTimeout).value_or(-1), 1);
  EXPECT_THAT(second->output(),
              HasSubstr("choose another with --metrics_port"));
}

}  // namespace
}  // namespace lockstep
