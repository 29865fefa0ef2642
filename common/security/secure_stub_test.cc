#include "common/security/secure_stub.h"

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "common/security/tls_identity.h"
#include "tests/testing/tls/test_ca.h"
#include "tests/testing/write_file.h"

namespace lockstep {
namespace {

using ::lockstep::testing::TestCa;
using ::lockstep::testing::WriteFile;

struct FakeStub {
  explicit FakeStub(const std::shared_ptr<grpc::Channel>& channel)
      : channel(channel) {}

  const std::shared_ptr<grpc::Channel> channel;
};

TEST(SecureStub, IsMadeOnceForEachChannel) {
  const std::string path = ::testing::TempDir() + "ca.pem";
  WriteFile(path, TestCa("first").certificate());
  auto identity =
      TlsIdentity::Start({.ca = {"ca", path}}, absl::Milliseconds(5));
  ASSERT_TRUE(identity.ok()) << identity.status();
  SecureStub<FakeStub> stub("localhost:1", {}, {*std::move(identity)});
  const auto first = stub.Get();
  EXPECT_EQ(stub.Get(), first);

  WriteFile(path, TestCa("second").certificate());
  while (stub.Get() == first) continue;
  EXPECT_NE(stub.Get()->channel, first->channel);
  EXPECT_EQ(stub.Get(), stub.Get());
}

}  // namespace
}  // namespace lockstep
