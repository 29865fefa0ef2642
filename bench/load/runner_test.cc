#include "bench/load/runner.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "bench/load/fake_transport.h"

namespace lockstep::bench {
namespace {

constexpr double kNear = 1e-6;

RunOptions Open(double rate, double seconds, int output_tokens) {
  RunOptions options;
  options.arrivals = ConstantArrivals(rate, seconds);
  options.dialogues.output_tokens = output_tokens;
  return options;
}

TEST(RunLoad, RecordsWhenEachWasDueAndAnswered) {
  FakeTransport server;  // 0.1 s to the first token, 0.01 to each next
  const LoadRun run = RunLoad(Open(2, 2, 3), server);
  ASSERT_EQ(run.records.size(), 4);
  for (int i = 0; i < 4; ++i) {
    EXPECT_NEAR(run.records[i].due_s, i * 0.5, kNear);
    EXPECT_NEAR(run.records[i].first_token_s(), 0.1, kNear);
    EXPECT_NEAR(run.records[i].whole_s(), 0.12, kNear);
    EXPECT_EQ(run.records[i].tokens, 3);
    EXPECT_EQ(run.records[i].prompt_tokens, 128);
  }
  EXPECT_EQ(run.inter_token.count(), 4 * 2);
  EXPECT_NEAR(run.inter_token.most_s(), 0.01, kNear);
  EXPECT_NEAR(run.seconds, 1.62, kNear);
}

// The server stands still for 10 s, in which 100 people come. Whoever counts
// from when a request was answered, or asks the next one only then, sees one
// slow answer.
TEST(RunLoad, CountsTheWaitOfAllWhoComeWhileTheServerStalls) {
  FakeTransport server;
  server.first_token_s = 0.001;
  server.stall_from_s = 10;
  server.stall_to_s = 20;
  const LoadRun run = RunLoad(Open(10, 40, 1), server);
  ASSERT_EQ(run.records.size(), 400);
  const auto waited = [&run](double seconds) {
    return std::count_if(
        run.records.begin(), run.records.end(),
        [&](const Record& r) { return r.first_token_s() >= seconds; });
  };
  EXPECT_NEAR(waited(0.5), 95, 2);
  EXPECT_NEAR(waited(5), 50, 2);
  EXPECT_NEAR(waited(9), 10, 2);
}

TEST(RunLoad, AsksAsManyAtATimeAsThereAreClients) {
  FakeTransport server;
  RunOptions options;
  options.clients = 3;
  options.seconds = 5;
  options.dialogues.output_tokens = 1;
  const LoadRun run = RunLoad(options, server);
  // One answer takes 0.1 s: each of the three waits for the two before it.
  EXPECT_NEAR(run.records.size(), 50 + 3, 1);
  EXPECT_NEAR(run.records.back().first_token_s(), 0.3, kNear);
  EXPECT_LE(run.records.back().due_s, 5);
}

TEST(RunLoad, SaysTheNextTurnAfterThinking) {
  FakeTransport server;
  RunOptions options = Open(1, 1, 2);
  options.dialogues.turns = 3;
  options.dialogues.think_s = 7;
  const LoadRun run = RunLoad(options, server);
  ASSERT_EQ(run.records.size(), 3);
  EXPECT_NEAR(run.records[1].due_s, run.records[0].end_s + 7, kNear);
  EXPECT_NEAR(run.records[1].first_token_s(), 0.1, kNear);
  ASSERT_EQ(server.prompts.size(), 3);
  EXPECT_EQ(server.prompts[1].ids.size(), 128 + 2 + 128);
  EXPECT_EQ(server.prompts[1].ids[128], 0);  // the answer's ids are 0 and 1
  EXPECT_EQ(server.prompts[1].ids[129], 1);
}

TEST(RunLoad, RecordsFailuresAndEndsTheirDialogues) {
  FakeTransport server;
  server.failures[1] = absl::ResourceExhaustedError("the queue is full.");
  RunOptions options = Open(1, 3, 2);
  options.dialogues.turns = 2;
  options.dialogues.think_s = 100;
  const LoadRun run = RunLoad(options, server);
  ASSERT_EQ(run.records.size(), 5);
  EXPECT_EQ(run.records[1].error, "RESOURCE_EXHAUSTED");
  EXPECT_EQ(run.records[1].tokens, 0);
  EXPECT_TRUE(run.records[2].ok());
}

TEST(RunLoad, LeavesTheWarmUpOut) {
  FakeTransport server;
  RunOptions options = Open(2, 4, 3);
  options.warmup_s = 2;
  const LoadRun run = RunLoad(options, server);
  EXPECT_EQ(server.prompts.size(), 8);
  EXPECT_EQ(run.records.size(), 4);
  EXPECT_GE(run.records[0].due_s, 2);
  EXPECT_EQ(run.inter_token.count(), 4 * 2);
}

}  // namespace
}  // namespace lockstep::bench
