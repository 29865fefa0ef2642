#include "bench/engine_bench.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "bench/engine_report.h"
#include "bench/workload.h"
#include "tests/testing/tiny_model.h"

namespace lockstep::bench {
namespace {

using ::testing::HasSubstr;

class EngineBench : public ::testing::Test {
 protected:
  EngineBench() {
    testing::TinyModel tiny;
    tiny.max_context = 1024;
    options_.rank.model = ::testing::TempDir() + "model";
    testing::WriteHuggingFaceFolder(tiny, options_.rank.model);
    options_.rank.threads = 2;
    options_.rank.num_pages = 1024;
    options_.repeat = 2;
  }

  EngineReport Run(const std::string& workloads) {
    auto parsed = ParseWorkloads(workloads);
    EXPECT_TRUE(parsed.ok()) << parsed.status();
    options_.workloads = *std::move(parsed);
    auto report = RunEngineBench(options_);
    EXPECT_TRUE(report.ok()) << report.status();
    return *std::move(report);
  }

  EngineBenchOptions options_;
};

// Faster than its roof a workload may seem, when the machine was busy while the
// ceilings were measured; by far it may not.
TEST_F(EngineBench, HoldsEveryWorkloadAgainstItsRoof) {
  const nlohmann::json json =
      ToJson(Run("load,pp64,tg8,b4,ctx128,serve2,prefix"));
  const nlohmann::json& rows = json["workloads"];
  std::vector<std::string> names;
  for (const nlohmann::json& row : rows) {
    SCOPED_TRACE(row.dump());
    names.push_back(row["workload"]);
    const double rate = row["tokens_per_s"]["median"];
    EXPECT_GT(rate, 0);
    EXPECT_GE(rate, row["tokens_per_s"]["min"]);
    EXPECT_LE(rate, row["tokens_per_s"]["max"]);
    const double share = row["share_of_roof"];
    EXPECT_TRUE(std::isfinite(share));
    EXPECT_GT(share, 0);
    EXPECT_LT(share, 10);
    EXPECT_GT(row["step_ms"]["p50"], 0);
    EXPECT_LE(row["step_ms"]["p50"], row["step_ms"]["p99"]);
  }
  EXPECT_THAT(names,
              ::testing::ElementsAre("pp64", "tg8", "b4", "ctx128", "serve2",
                                     "prefix-off", "prefix-on"));
  // Of 544 tokens of a prompt 512 are cached, or none.
  EXPECT_GT(rows[5]["computed_tokens"].get<int>(),
            8 * rows[6]["computed_tokens"].get<int>());
  EXPECT_GT(json["load"]["load_s"]["median"], 0);
  EXPECT_GT(json["load"]["first_token_s"]["median"],
            json["load"]["load_s"]["median"]);
  EXPECT_GT(json["load"]["resident_bytes"], json["weight_bytes"]);
}

TEST_F(EngineBench, TakesTurnsWithARival) {
  options_.rival = "echo 0.5";
  const nlohmann::json row = ToJson(Run("tg8"))["workloads"][0];
  EXPECT_EQ(row["rival_tokens_per_s"]["median"], 0.5);
  EXPECT_EQ(row["ratio"], row["tokens_per_s"]["median"].get<double>() / 0.5);
}

TEST_F(EngineBench, SkipsWhatDoesNotFitAndSaysWhy) {
  options_.rank.max_sequences = 8;
  const EngineReport report = Run("ctx2000,b9,tg8");
  EXPECT_THAT(report.rows[0].skipped, HasSubstr("a context of 2065 tokens"));
  EXPECT_THAT(report.rows[1].skipped, HasSubstr("--max_sequences is 8"));
  EXPECT_EQ(report.rows[2].skipped, "");
  const std::string text = ToText(report);
  EXPECT_THAT(text, HasSubstr(report.rows[0].skipped));
  EXPECT_THAT(text, HasSubstr("of roof"));
  EXPECT_THAT(ToJson(report)["workloads"][0].dump(), HasSubstr("skipped"));
}

TEST_F(EngineBench, SaysWhatIsWrongWithAModel) {
  options_.rank.model = "nowhere";
  EXPECT_THAT(RunEngineBench(options_).status().message(),
              HasSubstr("nowhere"));
}

}  // namespace
}  // namespace lockstep::bench
