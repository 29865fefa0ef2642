#include "frontend/http/router.h"

#include <gtest/gtest.h>

namespace lockstep::http {
namespace {

const Handler kNothing = [](Request, std::shared_ptr<ResponseWriter>) {};

TEST(Router, FindsByMethodAndPath) {
  const Router router({{"GET", "/v1/models", kNothing},
                       {"GET", "/v1/models/*", kNothing},
                       {"POST", "/run", kNothing}});
  EXPECT_EQ(router.Find("GET", "/v1/models").route->path, "/v1/models");
  EXPECT_EQ(router.Find("HEAD", "/v1/models").route->path, "/v1/models");
  EXPECT_EQ(router.Find("GET", "/v1/models/org/name").wildcard, "org/name");
  EXPECT_EQ(router.Find("GET", "/v1/models/").allow, "");
  EXPECT_EQ(router.Find("GET", "/nowhere").route, nullptr);
  EXPECT_EQ(router.Find("GET", "/nowhere").allow, "");
  EXPECT_EQ(router.Find("GET", "/run").route, nullptr);
  EXPECT_EQ(router.Find("GET", "/run").allow, "POST, OPTIONS");
  EXPECT_EQ(router.Find("POST", "/v1/models").allow, "GET, HEAD, OPTIONS");
}

TEST(PathOf, DropsWhatIsNoPath) {
  const struct {
    const char* target;
    const char* path;
  } kCases[] = {
      {"/v1/models", "/v1/models"},
      {"/v1/models?x=1", "/v1/models"},
      {"/a%20b%2fc", "/a b/c"},
      {"http://host:8080/health?x", "/health"},
      {"http://host", "/"},
      {"*", "*"},
      {"health", ""},
      {"", ""},
      {"/%", ""},
      {"/%4", ""},
      {"/%zz", ""},
      {"/%00", ""},
      {"host:443", ""},
  };
  for (const auto& c : kCases) EXPECT_EQ(PathOf(c.target), c.path) << c.target;
}

}  // namespace
}  // namespace lockstep::http
