// What flags make of a model's weights, and a copy of them that is damaged.

#include <absl/strings/str_cat.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "common/gguf_file.h"
#include "tests/e2e/worker_test_fixture.h"
#include "tests/testing/process.h"
#include "tests/testing/tiny_model.h"
#include "tests/testing/write_file.h"

namespace lockstep {
namespace {

using ::lockstep::testing::Process;
using ::lockstep::testing::WorkerTest;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class WorkerWeightsTest : public WorkerTest {
 protected:
  // The same model but for a bit of its embedding, where the fingerprint takes
  // no sample.
  static std::string DamagedCopy() {
    const std::string copy = ::testing::TempDir() + "damaged.gguf";
    std::filesystem::copy_file(
        ModelPath(), copy, std::filesystem::copy_options::overwrite_existing);
    const auto file = GgufFile::Open(copy);
    const uint64_t place =
        (*file)->tensors().at("token_embd.weight").offset + 10'000;
    std::fstream stream(copy, std::ios::in | std::ios::out | std::ios::binary);
    stream.seekg(place);
    const char byte = static_cast<char>(stream.get() ^ 1);
    stream.seekp(place);
    stream.put(byte);
    return copy;
  }

  // Both ranks of a group, each with a file of its own.
  struct TwoCopies {
    TwoCopies(const std::string& other, const std::vector<std::string>& flags) {
      auto of_leader = flags, of_follower = flags;
      of_leader.push_back("--local_ranks=1");
      of_leader.push_back("--leader_address=127.0.0.1:0");
      leader = *Process::Start(kWorker, Arguments(2, of_leader));
      const auto line = leader->WaitForLine("the group forms at ", kTimeout);
      EXPECT_TRUE(line.ok()) << line.status();
      of_follower.push_back("--rank=1");
      of_follower.push_back(absl::StrCat("--model=", other));
      of_follower.push_back(absl::StrCat("--leader_address=",
                                         line->substr(line->rfind(' ') + 1)));
      follower = *Process::Start(kWorker, Arguments(2, of_follower));
    }

    std::unique_ptr<Process> leader;
    std::unique_ptr<Process> follower;
  };
};

TEST_F(WorkerWeightsTest, ADamagedCopyIsFoundIfEveryByteIsRead) {
  TwoCopies group(DamagedCopy(), {"--verify_weights"});
  EXPECT_EQ(group.follower->WaitForExit(kTimeout).value_or(-1), 1);
  EXPECT_THAT(group.follower->output(),
              HasSubstr("has another model (fingerprint) than the leader"));
  EXPECT_THAT(group.follower->output(),
              HasSubstr("damaged.gguf have the digest"));
}

TEST_F(WorkerWeightsTest, SamplesDoNotFindIt) {
  TwoCopies group(DamagedCopy(), {});
  const auto serving = group.leader->WaitForPort(kTimeout);
  EXPECT_TRUE(serving.ok()) << serving.status();
}

TEST_F(WorkerWeightsTest, ACopyThatIsWholeIsWelcome) {
  Group group(2, {"--verify_weights"});
  Call call(*group.stub, Request(8));
  EXPECT_TRUE(call.ReadToEnd().ok());
}

TEST_F(WorkerWeightsTest, MatricesAreRoundedAsTheyAreLoaded) {
  Group exact(1), rounded(2, {"--quantize=q8_0"});
  EXPECT_THAT(ModelOf(rounded).weight_types(), ElementsAre("Q8_0", "F32"));
  EXPECT_NE(ModelOf(exact).fingerprint(), ModelOf(rounded).fingerprint());
  Call call(*rounded.stub, Request(8));
  EXPECT_TRUE(call.ReadToEnd().ok());
  EXPECT_EQ(call.tokens.size(), 8);
}

TEST_F(WorkerWeightsTest, RandomWeightsTakeAConfigAlone) {
  const std::string folder = ::testing::TempDir() + "config_alone";
  std::filesystem::create_directories(folder);
  testing::TinyModel model;
  model.head_dim = 32;
  testing::WriteFile(folder + "/config.json",
                     testing::MakeHuggingFaceConfig(model).dump());
  const std::vector<std::string> flags = {absl::StrCat("--model=", folder),
                                          "--load_format=dummy",
                                          "--quantize=q4_0"};
  Group one(1, flags), two(2, flags);
  Call at_one(*one.stub, Request(16)), at_two(*two.stub, Request(16));
  EXPECT_TRUE(at_one.ReadToEnd().ok());
  EXPECT_TRUE(at_two.ReadToEnd().ok());
  EXPECT_EQ(at_one.tokens.size(), 16);
}

TEST_F(WorkerWeightsTest, AModelWithoutAHeadMakesEmbeddings) {
  const std::string folder = ::testing::TempDir() + "without_head";
  testing::TinyModel model;
  model.head_dim = 32;
  model.without_head = true;
  WriteHuggingFaceFolder(model, folder);
  Group group(2, {absl::StrCat("--model=", folder)});
  EXPECT_THAT(group.leader->output(),
              HasSubstr("without an output head: embeddings alone"));
  EXPECT_THAT(ModelOf(group).no_generation(), HasSubstr("lm_head.weight"));

  v1::WorkerGenerateRequest embed = Request(1);
  embed.clear_sampling();
  embed.mutable_embedding();
  Call embedded(*group.stub, embed), generated(*group.stub, Request(8));
  EXPECT_TRUE(embedded.ReadToEnd().ok());
  const grpc::Status refused = generated.ReadToEnd();
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::UNIMPLEMENTED);
  EXPECT_THAT(refused.error_message(),
              HasSubstr("generation is not supported: the model's files have "
                        "no output head"));
}

TEST_F(WorkerWeightsTest, TellsTheSamplingThatItsFilesAskFor) {
  const std::string folder = ::testing::TempDir() + "sampling";
  testing::TinyModel model;
  model.head_dim = 32;
  WriteHuggingFaceFolder(model, folder);
  testing::WriteFile(folder + "/generation_config.json",
                     R"({"temperature": 0.6, "top_k": 20})");
  Group group(1, {absl::StrCat("--model=", folder)});
  const v1::SamplingParams told = ModelOf(group).default_sampling();
  EXPECT_EQ(told.temperature(), 0.6f);
  EXPECT_EQ(told.top_k(), 20);
  EXPECT_FALSE(told.has_top_p());
  Group neutral(1,
                {absl::StrCat("--model=", folder), "--generation_config=none"});
  EXPECT_FALSE(ModelOf(neutral).default_sampling().has_temperature());
}

}  // namespace
}  // namespace lockstep
