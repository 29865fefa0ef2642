#include "frontend/ledger/request_ledger.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <fstream>
#include <memory>
#include <string>
#include <utility>

namespace lockstep {
namespace {

TEST(RequestLedgerTest, ARequestEndsWhenNobodyHoldsItAnyMore) {
  RequestLedger ledger(nullptr);
  auto connection = ledger.Begin({.surface = "http", .route = "/health"});
  auto handler = connection;
  connection->SetHttpStatus(200);
  connection = nullptr;
  EXPECT_TRUE(ledger.counts("http").empty());
  handler = nullptr;
  EXPECT_EQ(ledger.counts("http"),
            (RequestLedger::Counts{{{"/health", "200"}, 1}}));
}

TEST(RequestLedgerTest, CountsByRouteAndCode) {
  RequestLedger ledger(nullptr);
  for (const int status : {200, 404, 200}) {
    ledger.Begin({.surface = "http", .route = "/v1/models/*"})
        ->SetHttpStatus(status);
  }
  ledger.Begin({.surface = "grpc", .route = "Generate"})
      ->SetGrpcStatus(absl::CancelledError("gone"));
  EXPECT_EQ(ledger.counts("http"),
            (RequestLedger::Counts{{{"/v1/models/*", "200"}, 2},
                                   {{"/v1/models/*", "404"}, 1}}));
  EXPECT_EQ(ledger.counts("grpc"),
            (RequestLedger::Counts{{{"Generate", "CANCELLED"}, 1}}));
}

// As a call's does that ends on another thread while its gateway is destroyed.
TEST(RequestLedgerTest, ARecordMayOutliveTheLedger) {
  const std::string path = ::testing::TempDir() + "/outlived.log";
  std::shared_ptr<AccessRecord> record;
  {
    auto log = AccessLog::Open(path, "access_log");
    ASSERT_TRUE(log.ok()) << log.status();
    RequestLedger ledger(*std::move(log));
    record = ledger.Begin({.surface = "http", .route = "/health"});
  }
  record->SetHttpStatus(200);
  record = nullptr;
  std::ifstream file(path);
  std::string line;
  EXPECT_TRUE(std::getline(file, line));
  EXPECT_NE(line.find("\"http_status\":200"), line.npos) << line;
}

TEST(RequestLedgerTest, WritesALineARequest) {
  const std::string path = ::testing::TempDir() + "/ledger.log";
  auto log = AccessLog::Open(path, "access_log");
  ASSERT_TRUE(log.ok()) << log.status();
  RequestLedger ledger(*std::move(log));
  ledger.Begin({.surface = "http", .route = "/health"})->SetHttpStatus(200);
  while (ledger.log()->written() < 1) sched_yield();
}

TEST(RequestLedgerTest, WhoGuessesKeysDoesNotFillTheDisk) {
  const std::string path = ::testing::TempDir() + "/guesses.log";
  auto log = AccessLog::Open(path, "access_log");
  ASSERT_TRUE(log.ok()) << log.status();
  absl::Time now = absl::UnixEpoch();
  RequestLedger ledger(*std::move(log), [&] { return now; });
  const auto guess = [&] {
    ledger.Begin({.surface = "http", .route = "/v1/models"})
        ->SetHttpStatus(401);
    ledger.Begin({.surface = "grpc", .route = "ListModels"})
        ->SetGrpcStatus(absl::UnauthenticatedError("no"));
  };
  constexpr int kMost = RequestLedger::kMostRefusedKeysAMinute;
  for (int i = 0; i < kMost; ++i) guess();
  EXPECT_EQ(ledger.withheld(), kMost);
  ledger.Begin({.surface = "http", .route = "/health"})->SetHttpStatus(200);
  now += absl::Seconds(1);
  for (int i = 0; i < kMost; ++i) guess();
  EXPECT_EQ(ledger.withheld(), 3 * kMost - kMost / 60);
  while (ledger.log()->written() < kMost + kMost / 60 + 1) sched_yield();
}

}  // namespace
}  // namespace lockstep
