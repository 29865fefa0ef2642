#include "frontend/discovery/make_discovery.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

namespace lockstep {
namespace {

TEST(MakeDiscovery, ByNameOrByService) {
  setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1", 1);
  setenv("KUBERNETES_SERVICE_PORT", "443", 1);
  for (const char* where :
       {"dns:workers.ns:50052", "kubernetes:ns/lockstep-leaders"}) {
    EXPECT_TRUE(CheckDiscovery({.where = where}).ok()) << where;
    EXPECT_TRUE(MakeDiscovery({.where = where}, nullptr).ok()) << where;
  }
}

TEST(MakeDiscovery, NamesTheFlagItsValueAndWhatItMayBe) {
  for (const char* bad :
       {"workers:1", "dns:workers", "dns:a:0", "kubernetes:leaders",
        "kubernetes:/leaders", "kubernetes:ns/", "kubernetes:ns/a/b",
        "kubernetes:ns/a?watch=1", "kubernetes:ns/-a", "kubernetes:Ns/a"}) {
    const absl::Status expected = absl::InvalidArgumentError(
        std::string("--worker_discovery is \"") + bad +
        "\"; it must be dns:name:port with a port of 1 to 65535 or "
        "kubernetes:namespace/service.");
    EXPECT_EQ(CheckDiscovery({.where = bad}), expected);
    EXPECT_EQ(MakeDiscovery({.where = bad}, nullptr).status(), expected);
  }
}

TEST(MakeDiscovery, OnlyAPodHasAnApiServer) {
  unsetenv("KUBERNETES_SERVICE_HOST");
  EXPECT_EQ(MakeDiscovery({.where = "kubernetes:ns/leaders"}, nullptr).status(),
            absl::FailedPreconditionError(
                "--worker_discovery is \"kubernetes:ns/leaders\", and "
                "KUBERNETES_SERVICE_HOST is not set; only a Pod can ask its "
                "API server."));
}

}  // namespace
}  // namespace lockstep
