#include "bench/serving/serving_report.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace lockstep::bench {
namespace {

// Two runs over gRPC of 50 and 100 tokens a second.
ServingReport OverGrpc() {
  ServingReport report;
  report.traffic.clients = 2;
  report.served = {{.seconds = 2,
                    .tokens = 100,
                    .first_token_s = {0.5},
                    .inter_token_s = {0.25}},
                   {.seconds = 1,
                    .tokens = 100,
                    .first_token_s = {1},
                    .inter_token_s = {0.125, 0.5}}};
  return report;
}

TEST(ServingReport, TakesTheRunsOfEachSideTogether) {
  ServingReport report = OverGrpc();
  RunResult& engine = report.engine.emplace_back();
  engine.tokens_per_s = 200;
  engine.step_s = {0.125};
  const nlohmann::json json = ToJson(report);
  EXPECT_EQ(json["clients"], 2);
  EXPECT_EQ(json["prompt_tokens"], 128);
  const nlohmann::json& served = json["served"];
  EXPECT_EQ(served["tokens_per_s"]["median"], 75);
  EXPECT_EQ(served["tokens_per_s"]["max"], 100);
  EXPECT_EQ(served["first_token_ms"]["p99"], 1000);
  EXPECT_EQ(served["inter_token_ms"]["p50"], 250);
  EXPECT_FALSE(served.contains("step_ms"));
  EXPECT_EQ(json["engine"]["tokens_per_s"]["median"], 200);
  EXPECT_EQ(json["engine"]["step_ms"]["p50"], 125);
}

TEST(ServingReport, HasALineForEachSideThereIs) {
  EXPECT_EQ(ToText(OverGrpc()),
            "2 clients, 3 requests each of 128 + 128 tokens, 20 ms apart\n"
            "           tokens/s     min-max  first token ms p50 / p99  "
            "inter-token ms p50 / p99  step ms p50 / p99\n"
            "over gRPC      75.0  50.0-100.0          500.00 / 1000.00  "
            "         250.00 / 500.00                   \n");
  EXPECT_FALSE(ToJson(OverGrpc()).contains("engine"));
}

}  // namespace
}  // namespace lockstep::bench
