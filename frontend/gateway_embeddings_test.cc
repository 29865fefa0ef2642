// Embeddings over both surfaces, before a worker that answers as it is told.

#include <absl/strings/escaping.h>
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <cstring>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "common/health.pb.h"
#include "proto/inference.pb.h"
#include "tests/testing/fake_worker.h"
#include "tests/testing/gateway_test_fixture.h"
#include "tests/testing/http/openai_client.h"
#include "tests/testing/http/openai_test_fixture.h"

namespace lockstep {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using testing::Embed;
using ::testing::HasSubstr;
using testing::OpenAiAnswer;

class GatewayEmbeddingsTest : public testing::OpenAiTest {
 protected:
  GatewayEmbeddingsTest() {
    worker_.set_script([](const auto& request) { return Embed(request); });
  }

  OpenAiAnswer Post(const json& request) {
    return testing::PostJson(http_port(), "/v1/embeddings", request);
  }

  grpc::Status EmbedByGrpc(const v1::EmbedRequest& request,
                           v1::EmbedResponse* response) {
    grpc::ClientContext context;
    return stub_->Embed(&context, request, response);
  }
};

TEST_F(GatewayEmbeddingsTest, AnswersAsOpenAiDoes) {
  const OpenAiAnswer answer = Post({{"model", "fake"}, {"input", "hi"}});
  EXPECT_EQ(answer.status, 200) << answer.json;
  EXPECT_EQ(answer.json["object"], "list");
  EXPECT_EQ(answer.json["model"], "fake");
  EXPECT_EQ(answer.json["data"].size(), 1);
  EXPECT_EQ(answer.json["data"][0],
            json::parse(R"({"object": "embedding", "index": 0,
                            "embedding": [3, 105]})"));
  EXPECT_EQ(answer.json["usage"]["prompt_tokens"], 3);
  EXPECT_EQ(answer.json["usage"]["total_tokens"], 3);
}

TEST_F(GatewayEmbeddingsTest, Base64IsOfLittleEndianFloats) {
  const OpenAiAnswer answer =
      Post({{"input", {"a", "bc"}}, {"encoding_format", "base64"}});
  ASSERT_EQ(answer.status, 200) << answer.json;
  std::string bytes;
  ASSERT_TRUE(absl::Base64Unescape(
      answer.json["data"][1]["embedding"].get<std::string>(), &bytes));
  ASSERT_EQ(bytes.size(), 8);
  std::vector<float> values(2);
  std::memcpy(values.data(), bytes.data(), bytes.size());
  EXPECT_THAT(values, ElementsAre(3, 'c'));
}

TEST_F(GatewayEmbeddingsTest, EveryInputIsAskedForWithWhatTheRequestSays) {
  const OpenAiAnswer answer = Post({{"input", json::parse("[[1, 2], [3]]")},
                                    {"dimensions", 1},
                                    {"pooling", "mean"},
                                    {"priority", 5}});
  ASSERT_EQ(answer.status, 200) << answer.json;
  EXPECT_EQ(answer.json["data"][0]["embedding"], json({2, 2}));
  EXPECT_EQ(answer.json["data"][1]["embedding"], json({1, 3}));
  for (const auto& request : worker_.requests()) {
    EXPECT_EQ(request.embedding().dimensions(), 1);
    EXPECT_EQ(request.embedding().pooling(), v1::MEAN);
    EXPECT_EQ(request.priority(), 5);
  }
}

TEST_F(GatewayEmbeddingsTest, WhatTheWorkerRefusesNamesTheField) {
  worker_.set_script([](const auto&) {
    testing::FakeAnswer answer;
    answer.status =
        absl::InvalidArgumentError("embedding.dimensions is 5, it must be 2.");
    return answer;
  });
  const OpenAiAnswer answer = Post({{"input", "hi"}, {"dimensions", 5}});
  EXPECT_EQ(answer.status, 400);
  EXPECT_EQ(answer.json["error"]["param"], "dimensions");
  EXPECT_EQ(answer.json["error"]["message"], "dimensions is 5, it must be 2.");
}

TEST_F(GatewayEmbeddingsTest, GrpcGivesTheSameVectors) {
  v1::EmbedRequest request;
  request.set_request_id("mine");
  request.add_inputs()->set_text("hi");
  request.add_inputs()->mutable_token_ids()->add_ids(7);
  v1::EmbedResponse response;
  const grpc::Status status = EmbedByGrpc(request, &response);
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(response.request_id(), "mine");
  EXPECT_EQ(response.model(), "fake");
  ASSERT_EQ(response.embeddings_size(), 2);
  EXPECT_THAT(response.embeddings(0).values(), ElementsAre(3, 'i'));
  EXPECT_THAT(response.embeddings(1).values(), ElementsAre(1, 7));
  EXPECT_EQ(response.usage().prompt_tokens(), 4);
}

TEST_F(GatewayEmbeddingsTest, GrpcNamesFieldValueAndLimit) {
  v1::EmbedResponse response;
  v1::EmbedRequest request;
  EXPECT_EQ(EmbedByGrpc(request, &response).error_message(),
            "inputs holds 0 inputs; it must hold 1 to 2048.");
  request.add_inputs()->set_text("hi");
  request.add_inputs();
  EXPECT_EQ(EmbedByGrpc(request, &response).error_message(),
            "inputs[1] is empty; set text or token_ids.");
  request.mutable_inputs(1)->set_text(std::string(200, 'x'));
  EXPECT_THAT(EmbedByGrpc(request, &response).error_message(),
              HasSubstr("inputs[1].text is 201 tokens long; at most 100 fit"));
  request.set_truncate_prompt_tokens(101);
  EXPECT_THAT(EmbedByGrpc(request, &response).error_message(),
              HasSubstr("truncate_prompt_tokens is 101"));
  request.set_truncate_prompt_tokens(10);
  EXPECT_TRUE(EmbedByGrpc(request, &response).ok());
}

TEST_F(GatewayEmbeddingsTest, GrpcRefusesWhatNoMessageHoldsBeforeItIsComputed) {
  worker_.Stop();
  WaitForHealth(grpc::health::v1::HealthCheckResponse::NOT_SERVING);
  worker_.model_info().mutable_embedding()->set_dimensions(10'000);
  worker_.Start();
  WaitForHealth(grpc::health::v1::HealthCheckResponse::SERVING);
  v1::EmbedRequest request;
  for (int i = 0; i < 2000; ++i) request.add_inputs()->set_text("hi");
  v1::EmbedResponse response;
  const grpc::Status status = EmbedByGrpc(request, &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(status.error_message(),
            "inputs holds 2000 inputs of 10000 values each, but an answer has "
            "at most 67108864 bytes; send at most 1677 at a time.");
  EXPECT_TRUE(worker_.requests().empty());
  request.mutable_embedding()->set_dimensions(10);
  EXPECT_TRUE(EmbedByGrpc(request, &response).ok());
}

TEST_F(GatewayEmbeddingsTest, ListModelsSaysWhatEmbeddingsThereAre) {
  grpc::ClientContext context;
  v1::ListModelsResponse response;
  ASSERT_TRUE(stub_->ListModels(&context, {}, &response).ok());
  EXPECT_EQ(response.models(0).embedding().dimensions(), 2);
  EXPECT_EQ(response.models(0).embedding().pooling(), v1::LAST_TOKEN);
}

TEST_F(GatewayEmbeddingsTest, AClientThatHangsUpEndsIt) {
  worker_.set_script(testing::Hang);
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() +
                       std::chrono::milliseconds(200));
  v1::EmbedRequest request;
  request.add_inputs()->set_text("hi");
  v1::EmbedResponse response;
  EXPECT_EQ(stub_->Embed(&context, request, &response).error_code(),
            grpc::StatusCode::DEADLINE_EXCEEDED);
  worker_.WaitForCancels(1);
}

}  // namespace
}  // namespace lockstep
