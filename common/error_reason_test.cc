#include "common/error_reason.h"

#include <absl/strings/cord.h>
#include <absl/strings/str_cat.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "tests/testing/read_file.h"

#include "common/rpc_status.pb.h"

namespace lockstep {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Pair;

TEST(ErrorReason, EachEntryIsAtTheNumberOfItsReasonUnderANameOfItsOwn) {
  std::set<absl::string_view> names;
  for (size_t i = 0; i < ErrorReasons().size(); ++i) {
    EXPECT_EQ(static_cast<size_t>(ErrorReasons()[i].reason), i);
    EXPECT_TRUE(names.insert(ErrorReasons()[i].name).second)
        << ErrorReasons()[i].name;
  }
  EXPECT_EQ(ErrorReasons().back().reason, ErrorReason::kNotFinite);
}

TEST(ErrorReason, ThePageHasTheTableAndNothingElse) {
  const std::string page = testing::ReadFile("docs/errors.md");
  size_t rows = 0;
  for (size_t at = page.find("` | "); at != page.npos;
       at = page.find("` | ", at + 1)) {
    ++rows;
  }
  EXPECT_EQ(rows, ErrorReasons().size());
  for (const ErrorReasonEntry& entry : ErrorReasons()) {
    EXPECT_THAT(page, HasSubstr(absl::StrCat(
                          "\n| ", absl::StatusCodeToString(entry.code), " | `",
                          entry.name, "` | ", entry.retryable ? "yes" : "no",
                          " | ", entry.when, " |\n")));
  }
}

TEST(ErrorReason, AnErrorHasCodeWordsReasonAndWhatElseIsKnown) {
  const absl::Status status = MakeError(
      ErrorReason::kQueueFullRequests, "the queue is full.",
      {.metadata = {{"limit", "4"}}, .retry_delay = absl::Milliseconds(1250)});
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(status.message(), "the queue is full.");
  EXPECT_EQ(ErrorReasonOf(status), "QUEUE_FULL_REQUESTS");
  EXPECT_THAT(ErrorMetadataOf(status), Contains(Pair("limit", "4")));
  EXPECT_THAT(ErrorMetadataOf(status), Contains(Pair("retryable", "true")));
  EXPECT_EQ(RetryDelayOf(status), absl::Milliseconds(1250));
}

TEST(ErrorReason, WhatHasNoneGetsItsCodes) {
  const absl::Status invalid =
      WithDefaultReason(absl::InvalidArgumentError("n"));
  EXPECT_EQ(ErrorReasonOf(invalid), "INVALID_REQUEST");
  EXPECT_EQ(RetryDelayOf(invalid), std::nullopt);
  EXPECT_EQ(
      RetryDelayOf(WithDefaultReason(absl::ResourceExhaustedError("full"))),
      absl::Seconds(1));
  EXPECT_TRUE(WithDefaultReason(absl::OkStatus()).ok());
  EXPECT_EQ(ErrorReasonOf(WithDefaultReason(absl::DataLossError("no entry"))),
            "");
  const absl::Status slow = MakeError(ErrorReason::kSlowReader, "slow");
  EXPECT_EQ(WithDefaultReason(slow), slow);
}

TEST(ErrorReason, TheEntryIsThatOfTheReasonElseOfTheCode) {
  const ErrorReasonEntry* const own =
      ErrorReasonEntryOf(MakeError(ErrorReason::kSlowReader, "slow"));
  ASSERT_NE(own, nullptr);
  EXPECT_EQ(own->reason, ErrorReason::kSlowReader);
  const ErrorReasonEntry* const of_code =
      ErrorReasonEntryOf(absl::ResourceExhaustedError("full"));
  ASSERT_NE(of_code, nullptr);
  EXPECT_EQ(of_code->reason, ErrorReason::kOverloaded);
  EXPECT_EQ(ErrorReasonEntryOf(absl::FailedPreconditionError("no")), nullptr);
}

TEST(ErrorReason, OneOfAnotherBuildHasNoEntry) {
  google::rpc::ErrorInfo info;
  info.set_domain("lockstep");
  info.set_reason("SHEEP");
  absl::Status status = absl::ResourceExhaustedError("full");
  status.SetPayload("type.googleapis.com/google.rpc.ErrorInfo",
                    absl::Cord(info.SerializeAsString()));
  EXPECT_EQ(ErrorReasonOf(status), "SHEEP");
  EXPECT_EQ(ErrorReasonEntryOf(status), nullptr);
}

TEST(ErrorReason, OtherWordsKeepTheReason) {
  const absl::Status status = WithMessage(
      MakeError(ErrorReason::kGroupFailed, "rank 1", {}), "the worker: rank 1");
  EXPECT_EQ(status.message(), "the worker: rank 1");
  EXPECT_EQ(ErrorReasonOf(status), "GROUP_FAILED");
}

}  // namespace
}  // namespace lockstep
