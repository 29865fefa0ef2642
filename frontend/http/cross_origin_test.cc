#include "frontend/http/cross_origin.h"

#include <absl/strings/str_cat.h>
#include <gtest/gtest.h>

#include <string>

namespace lockstep::http {
namespace {

constexpr char kPage[] = "https://app.example.org";

Request From(const std::string& origin, const Fields& others = {}) {
  Request request;
  request.fields = others;
  if (!origin.empty()) request.fields.emplace_back("Origin", origin);
  return request;
}

Request Question(const std::string& origin) {
  return From(origin, {{"Access-Control-Request-Method", "POST"},
                       {"Access-Control-Request-Headers",
                        "authorization,content-type"}});
}

TEST(CrossOrigin, NoPageIsAllowedUnlessItIsNamed) {
  const CrossOrigin none({});
  EXPECT_EQ(none.AnswerFields(From(kPage)), Fields());
  EXPECT_EQ(none.PreflightFields(Question(kPage), "POST"), Fields());
  const CrossOrigin one({kPage});
  const Fields vary = {{"vary", "origin"}};
  EXPECT_EQ(one.AnswerFields(From("https://other.example.org")), vary);
  EXPECT_EQ(one.AnswerFields(From("https://app.example.org:8443")), vary);
  EXPECT_EQ(one.AnswerFields(From("null")), vary);
  EXPECT_EQ(one.AnswerFields(From("")), vary);
  EXPECT_EQ(one.PreflightFields(Question("http://app.example.org"), "POST"),
            Fields());
}

TEST(CrossOrigin, AnAllowedPageMayAskAndReadTheAnswer) {
  const CrossOrigin pages({"https://first.example.org", kPage});
  EXPECT_EQ(
      pages.AnswerFields(From(kPage)),
      (Fields{{"vary", "origin"},
              {"access-control-allow-origin", kPage},
              // All that OpenAI's libraries read.
              {"access-control-expose-headers",
               "x-request-id, retry-after, retry-after-ms, x-should-retry"}}));
  EXPECT_EQ(
      pages.PreflightFields(Question(kPage), "POST, OPTIONS"),
      (Fields{{"access-control-allow-methods", "POST, OPTIONS"},
              {"access-control-max-age", "600"},
              {"access-control-allow-headers", "authorization,content-type"}}));
  // OPTIONS of anybody else's.
  EXPECT_EQ(pages.PreflightFields(From(kPage), "POST"), Fields());
}

TEST(CrossOrigin, AnyPage) {
  const CrossOrigin pages({"*"});
  EXPECT_EQ(pages.AnswerFields(From(kPage))[0],
            (Fields::value_type{"access-control-allow-origin", "*"}));
  EXPECT_EQ(pages.AnswerFields(From("")), Fields());
}

TEST(CrossOrigin, AnOriginHasNoPath) {
  for (const char* origin :
       {"*", "https://app.example.org", "http://localhost:3000",
        "http://[::1]:3000", "app://obsidian.md"}) {
    EXPECT_TRUE(CheckOrigin("allowed_origins", origin).ok()) << origin;
  }
  for (const char* origin :
       {"", "example.org", "https://", "://x", "https://a.example.org/",
        "https://a.example.org/path", "https://*.example.org",
        "https://user@example.org", "https://a b"}) {
    EXPECT_EQ(CheckOrigin("allowed_origins", origin),
              absl::InvalidArgumentError(absl::StrCat(
                  "--allowed_origins names \"", origin,
                  "\"; an origin is https://HOST, https://HOST:PORT or *, "
                  "without a path.")));
  }
}

}  // namespace
}  // namespace lockstep::http
