#include "hub/hub_client.h"

#include <absl/strings/str_cat.h>
#include <gtest/gtest.h>

#include "tests/testing/hub/fake_hub.h"

namespace lockstep {
namespace {

using testing::FakeHub;

class HubClientTest : public ::testing::Test {
 protected:
  HubClientTest() {
    model_.files = {{"config.json", {.content = "{}"}},
                    {"w.gguf", {.content = "weights", .large = true}}};
    hub_.SetModel("o/n", model_);
  }

  HubClient Client(const std::string& token = "") const {
    return HubClient({.endpoint = hub_.endpoint(),
                      .cache = "",
                      .token = token,
                      .offline = false});
  }

  HubModel File(const std::string& name) const {
    return {.repo = "o/n", .revision = model_.commit, .file = name};
  }

  // Of the list of o/n at a revision.
  std::string ListError(const std::string& revision = "main",
                        const std::string& token = "") {
    HubClient client = Client(token);
    return std::string(
        client.List({.repo = "o/n", .revision = revision}).status().message());
  }

  std::string page() const { return hub_.endpoint() + "/o/n"; }

  FakeHub hub_;
  FakeHub::Model model_;
};

TEST_F(HubClientTest, ListsARevision) {
  HubClient client = Client();
  const auto listing = client.List({.repo = "o/n"});
  ASSERT_TRUE(listing.ok()) << listing.status();
  EXPECT_EQ(listing->commit, model_.commit);
  EXPECT_EQ(listing->names,
            (std::vector<std::string>{"config.json", "w.gguf"}));
}

TEST_F(HubClientTest, ARevisionMayHaveSlashes) {
  model_.revisions = {"refs/pr/1"};
  hub_.SetModel("o/n", model_);
  HubClient client = Client();
  EXPECT_TRUE(client.List({.repo = "o/n", .revision = "refs/pr/1"}).ok());
}

TEST_F(HubClientTest, DescribesSmallAndLargeFiles) {
  HubClient client = Client();
  const auto small = client.Describe(File("config.json"));
  ASSERT_TRUE(small.ok()) << small.status();
  EXPECT_EQ(small->size, 2);
  EXPECT_EQ(small->etag.size(), 40);
  const auto large = client.Describe(File("w.gguf"));
  ASSERT_TRUE(large.ok()) << large.status();
  EXPECT_EQ(large->size, 7);
  EXPECT_EQ(large->etag.size(), 64);
}

TEST_F(HubClientTest, TheTokenStaysAtTheHub) {
  model_.token = "secret";
  hub_.SetModel("o/n", model_);
  HubClient client = Client("secret");
  ASSERT_TRUE(client.List({.repo = "o/n"}).ok());
  std::string content;
  const absl::Status status = client.Read(
      File("w.gguf"), 0, [&](const HttpReply&, absl::string_view part) {
        absl::StrAppend(&content, part);
        return absl::OkStatus();
      });
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(content, "weights");
  int elsewhere = 0;
  for (const FakeHub::Seen& request : hub_.seen()) {
    EXPECT_EQ(request.authorization, request.elsewhere ? "" : "Bearer secret")
        << request.target;
    elsewhere += request.elsewhere;
  }
  EXPECT_EQ(elsewhere, 1);
}

TEST_F(HubClientTest, AGatedModelNamesItsPageAndTheVariable) {
  model_.token = "secret";
  model_.gated = true;
  hub_.SetModel("o/n", model_);
  EXPECT_EQ(ListError(),
            absl::StrCat("the model o/n is gated or private: accept its terms ",
                         "at ", page(), "; set HF_TOKEN to the token of an ",
                         "account that may read it."));
  EXPECT_EQ(ListError("main", "other"),
            absl::StrCat("the model o/n is gated or private: accept its terms ",
                         "at ", page(), "; the account of the token given ",
                         "(HF_TOKEN) may not read it."));
  EXPECT_EQ(ListError("main", "secret"), "");
}

TEST_F(HubClientTest, WhatIsNotThereIsNamed) {
  HubClient client = Client();
  EXPECT_EQ(client.List({.repo = "o/x"}).status().message(),
            absl::StrCat("there is no model ", hub_.endpoint(),
                         "/o/x; or it is private, and set HF_TOKEN to the ",
                         "token of an account that may read it."));
  EXPECT_EQ(ListError("v9"), absl::StrCat(page(), " has no revision v9."));
  EXPECT_EQ(
      client.Describe(File("x.json")).status().message(),
      absl::StrCat(page(), " has no file x.json in ", model_.commit, "."));
}

TEST_F(HubClientTest, WhatMayPassIsUnavailable) {
  HubClient client = Client();
  for (const int status : {429, 500, 503}) {
    hub_.RefuseRequests(status, 1);
    EXPECT_TRUE(absl::IsUnavailable(client.List({.repo = "o/n"}).status()))
        << status;
  }
  hub_.RefuseRequests(418, 1);
  EXPECT_TRUE(
      absl::IsFailedPrecondition(client.List({.repo = "o/n"}).status()));
}

TEST_F(HubClientTest, WhatIsNoHubIsSaid) {
  hub_.RefuseRequests(200, 1);
  HubClient client = Client();
  EXPECT_FALSE(client.List({.repo = "o/n"}).ok());
  model_.files["config.json"].etag = "odd";
  hub_.SetModel("o/n", model_);
  EXPECT_EQ(client.Describe(File("config.json")).status().message(),
            absl::StrCat(page(), "/resolve/", model_.commit,
                         "/config.json can not be checked: its ETag is ",
                         "\"odd\", expected a SHA-256 or git's SHA-1."));
}

}  // namespace
}  // namespace lockstep
