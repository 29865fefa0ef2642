#include "common/metrics/metrics_server.h"

#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <gtest/gtest.h>

#include <boost/asio/ip/tcp.hpp>
#include <iterator>
#include <string>

namespace lockstep {
namespace {

constexpr MetricInfo kTable[] = {
    {"sheep", MetricType::kGauge, "", "counted"},
};

std::string Get(int port, const std::string& path) {
  boost::asio::ip::tcp::iostream stream("127.0.0.1", std::to_string(port));
  stream << "GET " << path
         << " HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n"
         << std::flush;
  return {std::istreambuf_iterator<char>(stream), {}};
}

TEST(MetricsServerTest, AnswersScrapesWithWhatTheBoardKnows) {
  MetricBoard board(JoinMetrics({kTable}));
  const auto registration =
      board.Register([](MetricWriter& writer) { writer.Add("sheep", {}, 3); });
  const auto server =
      MetricsServer::Start("127.0.0.1:0", "metrics_port", &board);
  ASSERT_TRUE(server.ok()) << server.status();
  const std::string answer = Get((*server)->port(), "/metrics");
  EXPECT_TRUE(absl::StartsWith(answer, "HTTP/1.1 200")) << answer;
  EXPECT_TRUE(absl::StrContains(answer, "text/plain")) << answer;
  EXPECT_TRUE(absl::StrContains(answer, "\nsheep 3\n")) << answer;
  EXPECT_TRUE(absl::StartsWith(Get((*server)->port(), "/"), "HTTP/1.1 404"));
}

TEST(MetricsServerTest, APortInUseIsNamedWithTheFlag) {
  MetricBoard board(JoinMetrics({kTable}));
  const auto first =
      MetricsServer::Start("127.0.0.1:0", "metrics_port", &board);
  ASSERT_TRUE(first.ok()) << first.status();
  const std::string address = absl::StrCat("127.0.0.1:", (*first)->port());
  const auto second = MetricsServer::Start(address, "metrics_port", &board);
  EXPECT_EQ(second.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_TRUE(absl::StrContains(second.status().message(), address));
  EXPECT_TRUE(absl::StrContains(second.status().message(), "--metrics_port"));
}

}  // namespace
}  // namespace lockstep
