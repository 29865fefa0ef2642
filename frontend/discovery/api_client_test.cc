#include "frontend/discovery/api_client.h"

#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <string>
#include <thread>

#include "frontend/discovery/service_account.h"
#include "tests/testing/kubernetes/fake_api_server.h"
#include "tests/testing/tls/test_ca.h"
#include "tests/testing/write_file.h"

namespace lockstep {
namespace {

using ::lockstep::testing::FakeApiServer;
using ::lockstep::testing::TestCa;
using ::lockstep::testing::WriteFile;

class ApiClientTest : public ::testing::Test {
 protected:
  absl::Status Get(const std::string& target = "/things",
                   absl::Duration limit = absl::Seconds(30)) {
    body_.clear();
    parts_ = 0;
    return client_.Get(target, limit, [this](absl::string_view part) {
      EXPECT_EQ(part.empty(), parts_ == 0);
      ++parts_;
      body_.append(part.data(), part.size());
      return on_part_;
    });
  }

  const std::string folder_ = ::testing::TempDir() + "account";
  FakeApiServer server_{folder_};
  ApiClient client_{{"127.0.0.1", absl::StrCat(server_.port())}, folder_};
  absl::Status on_part_;
  std::string body_;
  int parts_ = 0;
};

TEST_F(ApiClientTest, GetsABody) {
  server_.Put(
      {{"metadata", {{"name", "a"}}}, {"is", std::string(300'000, 'x')}});
  const absl::Status status = Get();
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_TRUE(absl::StrContains(body_, "\"name\":\"a\""));
  EXPECT_GT(body_.size(), 300'000);
}

TEST_F(ApiClientTest, ReadsTheTokenAnew) {
  EXPECT_TRUE(Get().ok());
  server_.ChangeToken("second-token");
  EXPECT_TRUE(Get().ok());
  WriteFile(folder_ + "/token", "another");
  EXPECT_EQ(Get(), absl::UnauthenticatedError(
                       "the API server answers 401: Unauthorized"));
}

TEST_F(ApiClientTest, SaysWhichFileIsNoGood) {
  WriteFile(folder_ + "/token", "two words");
  EXPECT_EQ(Get(), absl::FailedPreconditionError(absl::StrCat(
                       "there is no token in ", folder_, "/token")));
  WriteFile(folder_ + "/token", "a");
  WriteFile(folder_ + "/ca.crt", "no certificate");
  EXPECT_EQ(Get().code(), absl::StatusCode::kFailedPrecondition);
  std::remove((folder_ + "/ca.crt").c_str());
  EXPECT_EQ(Get(), absl::FailedPreconditionError(
                       absl::StrCat("cannot open ", folder_,
                                    "/ca.crt: No such file or directory")));
}

TEST_F(ApiClientTest, ShowsItsTokenToNobodyElse) {
  const TestCa other("other");
  WriteFile(folder_ + "/ca.crt", other.certificate());
  const absl::Status status = Get();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_TRUE(absl::StrContains(status.message(), "can not be trusted"))
      << status;
  EXPECT_TRUE(server_.targets().empty());
}

TEST_F(ApiClientTest, AnAnswerThatIsNoneHasItsCodeAndItsWords) {
  const struct {
    int http;
    absl::StatusCode code;
  } kCases[] = {{400, absl::StatusCode::kInvalidArgument},
                {403, absl::StatusCode::kPermissionDenied},
                {404, absl::StatusCode::kNotFound},
                {410, absl::StatusCode::kOutOfRange},
                {429, absl::StatusCode::kUnavailable},
                {503, absl::StatusCode::kUnavailable}};
  for (const auto& each : kCases) {
    server_.Refuse(each.http, "no\nway" + std::string(100'000, '!'));
    const absl::Status status = Get();
    EXPECT_EQ(status.code(), each.code) << each.http;
    EXPECT_TRUE(absl::StrContains(status.message(),
                                  absl::StrCat("answers ", each.http)))
        << status;
    EXPECT_LT(status.message().size(), 400);
    EXPECT_EQ(parts_, 0);
  }
}

TEST_F(ApiClientTest, TheReadersErrorEndsIt) {
  on_part_ = absl::DataLossError("enough");
  EXPECT_EQ(Get(), on_part_);
  EXPECT_EQ(parts_, 1);
}

TEST_F(ApiClientTest, AStreamComesPartByPart) {
  server_.SetPieceBytes(1);
  std::thread server([this] {
    server_.AwaitWatches(1);
    server_.SendToWatches("one\ntwo\n");
    server_.EndWatches();
  });
  const absl::Status status = Get("/things?a&resourceVersion=9");
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(body_, "one\ntwo\n");
  server.join();
}

TEST_F(ApiClientTest, AStreamThatIsCutIsNotWhole) {
  std::thread server([this] {
    server_.AwaitWatches(1);
    server_.SendToWatches("one\n");
    server_.CutWatches();
  });
  const absl::Status status = Get("/things?a&resourceVersion=9");
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
  EXPECT_EQ(body_, "one\n");
  server.join();
}

TEST_F(ApiClientTest, AStreamThatIsSilentIsNotWaitedFor) {
  EXPECT_EQ(Get("/things?a&resourceVersion=9", absl::Milliseconds(50)),
            absl::UnavailableError(
                "the API server can not be read from: it takes too long"));
}

TEST_F(ApiClientTest, NobodyThereIsUnavailable) {
  server_.Stop();
  const absl::Status status = Get();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_TRUE(absl::StrContains(status.message(), "can not be reached"))
      << status;
  server_.Start();
  EXPECT_TRUE(Get().ok());
}

TEST_F(ApiClientTest, StopEndsWhateverItWaitsFor) {
  server_.Hold();
  std::thread owner([this] {
    server_.AwaitRequests(1);
    client_.Stop();
  });
  EXPECT_EQ(Get().code(), absl::StatusCode::kCancelled);
  owner.join();
  EXPECT_EQ(Get().code(), absl::StatusCode::kCancelled);
}

}  // namespace
}  // namespace lockstep
