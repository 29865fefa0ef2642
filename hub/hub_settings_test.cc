#include "hub/hub_settings.h"

#include <gtest/gtest.h>

#include <map>

#include "tests/testing/write_file.h"

namespace lockstep {
namespace {

HubSettings From(const std::map<std::string, std::string>& variables) {
  return HubSettingsFrom([&variables](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

TEST(HubSettingsTest, CacheGoesByTheVariableNearestToIt) {
  std::map<std::string, std::string> variables = {{"HOME", "/me"}};
  EXPECT_EQ(From(variables).cache, "/me/.cache/huggingface/hub");
  variables["XDG_CACHE_HOME"] = "/xdg";
  EXPECT_EQ(From(variables).cache, "/xdg/huggingface/hub");
  variables["HF_HOME"] = "~/hf";
  EXPECT_EQ(From(variables).cache, "/me/hf/hub");
  variables["HF_HUB_CACHE"] = "/cache";
  EXPECT_EQ(From(variables).cache, "/cache");
}

TEST(HubSettingsTest, Endpoint) {
  EXPECT_EQ(From({}).endpoint, "https://huggingface.co");
  EXPECT_EQ(From({{"HF_ENDPOINT", ""}}).endpoint, "https://huggingface.co");
  EXPECT_EQ(From({{"HF_ENDPOINT", "http://m:1/x//"}}).endpoint, "http://m:1/x");
}

TEST(HubSettingsTest, TokenIsTheVariablesElseTheFiles) {
  const std::string home = ::testing::TempDir() + "/hf";
  EXPECT_EQ(From({{"HF_HOME", home + "/none"}}).token, "");
  testing::WriteFile(home + "/token", "of_file\n");
  EXPECT_EQ(From({{"HF_HOME", home}}).token, "of_file");
  EXPECT_EQ(From({{"HF_TOKEN_PATH", home + "/token"}}).token, "of_file");
  EXPECT_EQ(From({{"HF_HOME", home}, {"HF_TOKEN", " given\n"}}).token, "given");
}

TEST(HubSettingsTest, Offline) {
  EXPECT_FALSE(From({}).offline);
  EXPECT_FALSE(From({{"HF_HUB_OFFLINE", "0"}}).offline);
  EXPECT_TRUE(From({{"HF_HUB_OFFLINE", "1"}}).offline);
  EXPECT_TRUE(From({{"TRANSFORMERS_OFFLINE", "Yes"}}).offline);
}

}  // namespace
}  // namespace lockstep
