// What a gateway says of its model, over both surfaces, and what it refuses
// for it.

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "proto/inference.pb.h"
#include "tests/testing/fake_worker.h"
#include "tests/testing/gateway_test_fixture.h"
#include "tests/testing/http/openai_client.h"
#include "tests/testing/http/openai_test_fixture.h"

namespace lockstep {
namespace {

using nlohmann::json;
using testing::OpenAiAnswer;
using testing::PostJson;

class GatewayModelTest : public testing::OpenAiTest {
 protected:
  // The worker again, with another model.
  template <typename Change>
  void ServeAnother(Change change) {
    worker_.Stop();
    WaitForHealth(grpc::health::v1::HealthCheckResponse::NOT_SERVING);
    change(worker_.model_info());
    worker_.Start();
    WaitForHealth(grpc::health::v1::HealthCheckResponse::SERVING);
  }

  v1::ListModelsResponse::Model ListedModel() {
    grpc::ClientContext context;
    v1::ListModelsResponse response;
    EXPECT_TRUE(stub_->ListModels(&context, {}, &response).ok());
    return response.models(0);
  }

  json HttpModel() { return json::parse(Get("/v1/models/fake").body); }
};

TEST_F(GatewayModelTest, TellsHowItIsSampledByDefault) {
  EXPECT_EQ(ListedModel().default_sampling().ByteSizeLong(), 0);
  EXPECT_EQ(HttpModel()["default_sampling"], json::object());
  ServeAnother([](v1::ModelInfo& info) {
    info.mutable_default_sampling()->set_temperature(0.6f);
    info.mutable_default_sampling()->set_top_k(0);
  });
  const v1::ListModelsResponse::Model listed = ListedModel();
  EXPECT_EQ(listed.default_sampling().temperature(), 0.6f);
  EXPECT_TRUE(listed.default_sampling().has_top_k());
  EXPECT_FALSE(listed.default_sampling().has_top_p());
  EXPECT_EQ(HttpModel()["default_sampling"],
            json({{"temperature", 0.6}, {"top_k", 0}}));
}

TEST_F(GatewayModelTest, WithoutAHeadItMakesEmbeddingsAlone) {
  ServeAnother([](v1::ModelInfo& info) {
    info.set_no_generation("it has no output head.");
  });
  worker_.set_script(testing::Embed);
  constexpr char kRefusal[] =
      "generation is not supported: it has no output head.";
  EXPECT_EQ(ListedModel().no_generation(), "it has no output head.");
  const testing::Outcome generated = Generate(testing::TextRequest());
  EXPECT_EQ(generated.status.error_code(), grpc::StatusCode::UNIMPLEMENTED);
  EXPECT_EQ(generated.status.error_message(), kRefusal);
  for (const OpenAiAnswer& answer :
       {Chat(json::object()), Complete({{"prompt", "hi"}})}) {
    EXPECT_EQ(answer.status, 501);
    EXPECT_EQ(answer.json["error"]["message"], kRefusal);
    EXPECT_EQ(answer.json["error"]["code"], "not_implemented");
  }
  EXPECT_TRUE(worker_.requests().empty());
  EXPECT_EQ(PostJson(http_port(), "/v1/embeddings", {{"input", "hi"}}).status,
            200);
  EXPECT_EQ(PostJson(http_port(), "/tokenize", {{"messages", Hi()}}).status,
            200);
}

}  // namespace
}  // namespace lockstep
