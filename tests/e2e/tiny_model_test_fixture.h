#pragma once

#include <absl/time/time.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>

#include "common/grpc_server.h"
#include "tests/testing/tiny_gguf.h"
#include "tests/testing/tiny_model.h"

namespace lockstep::testing {

// For processes that serve a random model, which is made here.
class TinyModelTest : public ::testing::Test {
 protected:
  static constexpr absl::Duration kTimeout = absl::Seconds(60);
  // Of a request that is meant to be cut short: seconds of work.
  static constexpr uint32_t kEndlessTokens = 60'000;

  static void SetUpTestSuite() {
    TinyModel model;
    model.max_context = kEndlessTokens + 1000;
    WriteGguf(model, ModelPath());
  }

  static std::string ModelPath() {
    return ::testing::TempDir() + "tiny-model.gguf";
  }

  static std::shared_ptr<grpc::Channel> Connect(const std::string& address) {
    return grpc::CreateCustomChannel(
        address, grpc::InsecureChannelCredentials(), ChannelArguments());
  }
};

}  // namespace lockstep::testing
