// A worker of two ranks and a gateway, as processes, of a hub's model.

#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <memory>
#include <string>

#include "tests/e2e/serving_test_fixture.h"
#include "tests/testing/hub/fake_hub.h"
#include "tests/testing/process.h"
#include "tests/testing/read_file.h"

namespace lockstep::testing {
namespace {

using ::testing::HasSubstr;

constexpr char kFolder[] = "tests/goldens/tiny/qwen3/bf16";

class HubTest : public ServingTest {
 protected:
  HubTest() : cache_(::testing::TempDir() + "/hub") {
    std::filesystem::remove_all(cache_);
    for (const auto& entry : std::filesystem::directory_iterator(kFolder)) {
      const std::string path = entry.path().string();
      model_.files[entry.path().filename().string()] = {
          .content = ReadFile(path),
          .large = absl::EndsWith(path, ".safetensors")};
    }
    model_.files["generation_config.json"] = {
        .content = R"({"eos_token_id": 7, "temperature": 0, "top_k": 20})"};
    hub_.SetModel("owner/tiny", model_);
  }

  std::map<std::string, std::string> Environment() const {
    return {{"HF_ENDPOINT", hub_.endpoint()}, {"HF_HUB_CACHE", cache_}};
  }

  void StartHubsWorker() {
    auto worker = Process::Start(
        "worker/worker",
        {"--model=owner/tiny", "--listen=127.0.0.1:0", "--threads=1",
         "--num_pages=64", "--tensor_parallel_size=2"},
        Environment());
    ASSERT_TRUE(worker.ok()) << worker.status();
    worker_ = *std::move(worker);
    const auto port = worker_->WaitForPort(kTimeout);
    ASSERT_TRUE(port.ok()) << port.status();
    worker_address_ = absl::StrCat("127.0.0.1:", *port);
  }

  const std::string cache_;
  FakeHub hub_;
  FakeHub::Model model_;
};

TEST_F(HubTest, IsServedByItsNameAndDownloadedOnce) {
  ASSERT_NO_FATAL_FAILURE(StartHubsWorker());
  ASSERT_NO_FATAL_FAILURE(StartGateway("--model=owner/tiny", Environment()));
  for (const auto& [name, file] : model_.files) {
    EXPECT_EQ(hub_.NumReads(name), 1) << name;
  }
  v1::GenerateRequest request = Request(/*max_tokens=*/4);
  request.set_model("owner/tiny");
  EXPECT_TRUE(Generate(request).back().has_summary());
}

TEST_F(HubTest, ItsSamplingIsThatOfRequestsThatSayNone) {
  ASSERT_NO_FATAL_FAILURE(StartHubsWorker());
  ASSERT_NO_FATAL_FAILURE(StartGateway("--model=owner/tiny", Environment()));
  EXPECT_THAT(worker_->output(), HasSubstr("temperature=0 top_k=20"));
  EXPECT_THAT(worker_->output(),
              HasSubstr("eos_token_id is 2 in config.json and 7 in "
                        "generation_config.json"));
  const auto ids_of = [this](const v1::GenerateRequest& request) {
    std::vector<uint32_t> ids;
    for (const auto& event : Generate(request)) {
      ids.insert(ids.end(), event.delta().token_ids().begin(),
                 event.delta().token_ids().end());
    }
    return ids;
  };
  v1::GenerateRequest greedy = Request(/*max_tokens=*/16);
  v1::GenerateRequest silent = greedy;
  silent.mutable_sampling()->clear_temperature();
  EXPECT_EQ(ids_of(silent), ids_of(greedy));
}

TEST_F(HubTest, AWorkerSaysWhyItGetsNone) {
  model_.token = "secret";
  model_.gated = true;
  hub_.SetModel("owner/tiny", model_);
  const auto worker = Process::Start(
      "worker/worker", {"--model=owner/tiny", "--listen=127.0.0.1:0"},
      Environment());
  ASSERT_TRUE(worker.ok()) << worker.status();
  EXPECT_EQ((*worker)->WaitForExit(kTimeout).value_or(-1), 1);
  EXPECT_THAT((*worker)->output(),
              HasSubstr("worker: the model owner/tiny is gated or private"));
}

}  // namespace
}  // namespace lockstep::testing
