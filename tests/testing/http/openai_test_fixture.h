#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "tests/testing/gateway_test_fixture.h"
#include "tests/testing/http/openai_client.h"
#include "tests/testing/http/raw_connection.h"

namespace lockstep::testing {

// GatewayTest's gateway, asked by OpenAI's API.
//
//   TEST_F(OpenAiTest, Answers) {
//     EXPECT_EQ(Chat({{"max_tokens", 4}}).status, 200);
//   }
class OpenAiTest : public GatewayTest {
 protected:
  explicit OpenAiTest(
      const std::function<void(GatewayOptions*)>& adjust = nullptr)
      : GatewayTest(adjust) {}

  // What the user says, where nothing else is said.
  static nlohmann::json Hi() {
    return nlohmann::json::array({{{"role", "user"}, {"content", "hi"}}});
  }

  OpenAiAnswer Chat(nlohmann::json request) {
    request["messages"] = Hi();
    return PostJson(http_port(), "/v1/chat/completions", request);
  }
  OpenAiAnswer Complete(const nlohmann::json& request) {
    return PostJson(http_port(), "/v1/completions", request);
  }
  RawResponse Get(const std::string& path) { return Fetch(http_port(), path); }
};

}  // namespace lockstep::testing
