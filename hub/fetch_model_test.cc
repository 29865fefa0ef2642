#include "hub/fetch_model.h"

#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <absl/synchronization/mutex.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>

#include <filesystem>
#include <map>
#include <memory>
#include <thread>

#include "tests/testing/hub/fake_hub.h"
#include "tests/testing/read_file.h"
#include "tests/testing/write_file.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;
using testing::FakeHub;

// Of some MiB, so that it comes in parts; differs from place to place.
std::string Weights() {
  std::string bytes;
  for (int i = 0; i < 300'000; ++i) absl::StrAppend(&bytes, i, ",");
  return bytes;
}

class FetchModelTest : public ::testing::Test {
 protected:
  FetchModelTest() {
    settings_.cache =
        ::testing::TempDir() + "/" +
        ::testing::UnitTest::GetInstance()->current_test_info()->name();
    fs::remove_all(settings_.cache);
    settings_.endpoint = hub_->endpoint();
    options_.retry_wait = absl::ZeroDuration();
    model_.files = {
        {"config.json", {.content = "{\"a\":1}"}},
        {"tokenizer.json", {.content = "{}"}},
        {"model.safetensors", {.content = Weights(), .large = true}}};
    hub_->SetModel("o/n", model_);
  }

  absl::StatusOr<std::string> Fetch(const std::string& name = "o/n") const {
    return FetchModel(name, settings_, options_);
  }

  std::string Error(const std::string& name = "o/n") const {
    return std::string(Fetch(name).status().message());
  }

  std::string repo_folder() const { return settings_.cache + "/models--o--n"; }
  std::string snapshot() const {
    return absl::StrCat(repo_folder(), "/snapshots/", model_.commit);
  }

  // The paths of what is in the folder of blobs.
  std::vector<std::string> Blobs() const {
    std::vector<std::string> paths;
    for (const auto& entry : fs::directory_iterator(repo_folder() + "/blobs")) {
      paths.push_back(entry.path().string());
    }
    return paths;
  }

  std::unique_ptr<FakeHub> hub_ = std::make_unique<FakeHub>();
  FakeHub::Model model_;
  HubSettings settings_;
  FetchOptions options_;
};

TEST_F(FetchModelTest, APathStays) {
  EXPECT_EQ(*Fetch("/models/a"), "/models/a");
  EXPECT_EQ(*Fetch("a.gguf"), "a.gguf");
  EXPECT_TRUE(hub_->seen().empty());
}

TEST_F(FetchModelTest, LaysFilesOutAsHuggingFacesProgramsDo) {
  const auto path = Fetch();
  ASSERT_TRUE(path.ok()) << path.status();
  EXPECT_EQ(*path, snapshot());
  EXPECT_EQ(testing::ReadFile(*path + "/model.safetensors"), Weights());
  EXPECT_EQ(testing::ReadFile(repo_folder() + "/refs/main"), model_.commit);
  const std::string link = fs::read_symlink(*path + "/config.json").string();
  EXPECT_EQ(link.substr(0, 12), "../../blobs/");
  EXPECT_EQ(Blobs().size(), 3);
  EXPECT_TRUE(fs::exists(settings_.cache + "/.locks/models--o--n/" +
                         link.substr(12) + ".lock"));
}

TEST_F(FetchModelTest, WhatIsThereIsNotAskedForAgain) {
  ASSERT_TRUE(Fetch().ok());
  const size_t before = hub_->seen().size();
  ASSERT_TRUE(Fetch().ok());
  EXPECT_EQ(hub_->seen().size(), before + 1);  // which commit it is
}

TEST_F(FetchModelTest, ANewCommitBringsOnlyWhatItChanged) {
  ASSERT_TRUE(Fetch().ok());
  model_.commit = std::string(40, 'b');
  model_.files["config.json"].content = "{\"a\":2}";
  hub_->SetModel("o/n", model_);
  const auto path = Fetch();
  ASSERT_TRUE(path.ok()) << path.status();
  EXPECT_EQ(*path, snapshot());
  EXPECT_EQ(testing::ReadFile(*path + "/config.json"), "{\"a\":2}");
  EXPECT_EQ(testing::ReadFile(*path + "/model.safetensors"), Weights());
  EXPECT_EQ(hub_->NumReads("model.safetensors"), 1);
}

TEST_F(FetchModelTest, ATextNeedsNoWeights) {
  options_.part = ModelPart::kText;
  ASSERT_TRUE(Fetch().ok());
  EXPECT_EQ(hub_->NumReads("model.safetensors"), 0);
  options_.part = ModelPart::kAll;
  ASSERT_TRUE(Fetch().ok());
  EXPECT_EQ(hub_->NumReads("config.json"), 1);
  EXPECT_EQ(hub_->NumReads("model.safetensors"), 1);
}

TEST_F(FetchModelTest, AGgufFileInAFolderOfARevision) {
  model_.revisions = {"v1"};
  model_.files = {{"q/a-Q4_0.gguf", {.content = "4", .large = true}},
                  {"q/a-Q8_0.gguf", {.content = "8", .large = true}}};
  hub_->SetModel("o/n", model_);
  const auto path = Fetch("o/n@v1:Q8_0");
  ASSERT_TRUE(path.ok()) << path.status();
  EXPECT_EQ(*path, snapshot() + "/q/a-Q8_0.gguf");
  EXPECT_EQ(testing::ReadFile(*path), "8");
  EXPECT_EQ(Blobs().size(), 1);
}

TEST_F(FetchModelTest, GoesOnWhereAConnectionBroke) {
  hub_->CutBodies(/*after_bytes=*/700'000, /*times=*/2);
  model_.files.erase("tokenizer.json");
  model_.files.erase("config.json");
  model_.files["w.gguf"] = model_.files["model.safetensors"];
  hub_->SetModel("o/n", model_);
  const auto path = Fetch("o/n:w.gguf");
  ASSERT_TRUE(path.ok()) << path.status();
  EXPECT_EQ(testing::ReadFile(*path), Weights());
  std::vector<std::string> ranges;
  for (const FakeHub::Seen& request : hub_->seen()) {
    if (request.elsewhere) ranges.push_back(request.range);
  }
  EXPECT_EQ(ranges,
            (std::vector<std::string>{"", "bytes=700000-", "bytes=1400000-"}));
}

TEST_F(FetchModelTest, BeginsAgainWhereTheHubTakesNoRanges) {
  hub_->SetTakesRanges(false);
  hub_->CutBodies(/*after_bytes=*/700'000, /*times=*/2);
  const auto path = Fetch();
  ASSERT_TRUE(path.ok()) << path.status();
  EXPECT_EQ(testing::ReadFile(*path + "/model.safetensors"), Weights());
}

TEST_F(FetchModelTest, GoesOnWithWhatAnEarlierProcessLeft) {
  ASSERT_TRUE(Fetch().ok());
  const std::string blob = fs::canonical(snapshot() + "/model.safetensors");
  fs::rename(blob, blob + ".incomplete");
  fs::resize_file(blob + ".incomplete", 1'000'000);
  const auto path = Fetch();
  ASSERT_TRUE(path.ok()) << path.status();
  EXPECT_EQ(testing::ReadFile(*path + "/model.safetensors"), Weights());
  EXPECT_EQ(hub_->seen().back().range, "bytes=1000000-");
}

TEST_F(FetchModelTest, AConnectionThatBringsNothingIsGivenUp) {
  hub_->CutBodies(/*after_bytes=*/0, /*times=*/1000);
  const absl::Status status = Fetch().status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  hub_->CutBodies(0, 0);
  EXPECT_TRUE(Fetch().ok());
}

TEST_F(FetchModelTest, AnOverloadedHubIsAskedAgainWhatAFileIs) {
  hub_->RefuseRequests(503, /*times=*/3, /*passing=*/1);
  EXPECT_TRUE(Fetch().ok());
}

TEST_F(FetchModelTest, AnOverloadedHubIsAskedAgainForAFile) {
  options_.part = ModelPart::kText;
  ASSERT_TRUE(Fetch().ok());
  options_.part = ModelPart::kAll;
  model_.files["model.safetensors"].content = "w";
  // The list and the description pass.
  options_.tell = [this](const std::string&) { hub_->RefuseRequests(503, 2); };
  EXPECT_TRUE(Fetch().ok());
}

TEST_F(FetchModelTest, WhatCameDamagedIsDeletedAndSaid) {
  for (const char* name : {"config.json", "model.safetensors"}) {
    const FakeHub::File good = model_.files[name];
    const size_t digits = good.large ? 64 : 40;
    model_.files[name].etag = std::string(digits, 'd');
    hub_->SetModel("o/n", model_);
    const absl::Status status = Fetch().status();
    EXPECT_TRUE(absl::IsDataLoss(status)) << status;
    EXPECT_TRUE(absl::StartsWith(status.message(),
                                 absl::StrCat(name, " came damaged: its ")))
        << status;
    for (const std::string& path : Blobs()) {
      EXPECT_FALSE(absl::StrContains(path, std::string(digits, 'd'))) << path;
    }
    EXPECT_FALSE(fs::exists(snapshot() + "/" + name));
    model_.files[name] = good;
    hub_->SetModel("o/n", model_);
    EXPECT_TRUE(Fetch().ok());
    fs::remove_all(settings_.cache);
  }
}

TEST_F(FetchModelTest, ADiskThatIsTooSmallIsSaidBeforeAnythingComes) {
  model_.files["model.safetensors"].size = int64_t{1} << 60;
  hub_->SetModel("o/n", model_);
  const absl::Status status = Fetch().status();
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_TRUE(
      absl::StrContains(status.message(), "o/n takes 1048576.0 TiB more"))
      << status;
  EXPECT_TRUE(absl::StrContains(status.message(), "HF_HOME")) << status;
  EXPECT_EQ(hub_->NumReads("config.json"), 0);
}

TEST_F(FetchModelTest, ADiskThatFillsUpIsSaid) {
  // Stands in for one: no file may grow beyond this.
  rlimit all = {};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &all), 0);
  const rlimit full = {.rlim_cur = 500'000, .rlim_max = all.rlim_max};
  const auto handler = signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &full), 0);
  const absl::Status status = Fetch().status();
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &all), 0);
  signal(SIGXFSZ, handler);
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_TRUE(absl::StrContains(status.message(), "goes on from here"))
      << status;
  ASSERT_TRUE(Fetch().ok());
  EXPECT_EQ(hub_->seen().back().range, "bytes=500000-");
}

TEST_F(FetchModelTest, AFolderThatCanNotBeMadeIsNamed) {
  testing::WriteFile(settings_.cache, "a file");
  EXPECT_TRUE(absl::StrContains(Error(), "can not make the folder")) << Error();
  fs::remove_all(settings_.cache);
}

TEST_F(FetchModelTest, SeveralAtOnceDownloadOnce) {
  std::vector<std::thread> ranks;
  std::vector<absl::StatusOr<std::string>> paths(4);
  for (auto& path : paths) {
    ranks.emplace_back([this, &path] { path = Fetch(); });
  }
  for (std::thread& rank : ranks) rank.join();
  for (const auto& path : paths) {
    ASSERT_TRUE(path.ok()) << path.status();
    EXPECT_EQ(*path, snapshot());
  }
  for (const auto& [name, file] : model_.files) {
    EXPECT_EQ(hub_->NumReads(name), 1) << name;
  }
}

TEST_F(FetchModelTest, OfflineTheCacheIsAllThereIs) {
  settings_.offline = true;
  EXPECT_EQ(Error(), absl::StrCat("o/n is not in ", settings_.cache,
                                  ", and HF_HUB_OFFLINE forbids to ask the hub "
                                  "for it. Nor is there a file or folder "
                                  "o/n."));
  settings_.offline = false;
  ASSERT_TRUE(Fetch().ok());
  settings_.offline = true;
  const size_t before = hub_->seen().size();
  EXPECT_EQ(*Fetch(), snapshot());
  EXPECT_EQ(*Fetch("o/n@" + model_.commit), snapshot());
  EXPECT_TRUE(absl::StartsWith(Error("o/n@v2"), "o/n@v2 is not in "));
  EXPECT_TRUE(absl::StrContains(Error("o/n:a.gguf"), "is not enough"));
  EXPECT_EQ(hub_->seen().size(), before);
}

TEST_F(FetchModelTest, WithoutAConnectionItIsWhatItLastWas) {
  ASSERT_TRUE(Fetch().ok());
  hub_ = nullptr;
  EXPECT_EQ(*Fetch(), snapshot());
  const std::string error = Error("o/other");
  EXPECT_TRUE(absl::StrContains(error, "o/other is not in ")) << error;
  EXPECT_TRUE(absl::StrContains(error, "the hub can not be asked for it"))
      << error;
}

TEST_F(FetchModelTest, ARefusalIsNotHiddenByTheCache) {
  ASSERT_TRUE(Fetch().ok());
  model_.token = "secret";
  model_.gated = true;
  hub_->SetModel("o/n", model_);
  EXPECT_TRUE(absl::StrContains(Error(), "HF_TOKEN")) << Error();
}

TEST_F(FetchModelTest, ProgressIsTold) {
  absl::Mutex mutex;
  std::vector<std::string> told;
  options_.tell_every = absl::ZeroDuration();
  options_.tell = [&](const std::string& text) {
    absl::MutexLock lock(&mutex);
    told.push_back(text);
  };
  ASSERT_TRUE(Fetch().ok());
  ASSERT_GE(told.size(), 2);
  EXPECT_EQ(told.front(), absl::StrCat("o/n: 1.9 MiB from ", hub_->endpoint()));
  EXPECT_TRUE(absl::StrContains(told.back(), "1.9 MiB of 1.9 MiB, 100%, "))
      << told.back();
}

}  // namespace
}  // namespace lockstep
