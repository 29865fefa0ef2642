#include "common/security/file_watch.h"

#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "tests/testing/write_file.h"

namespace lockstep {
namespace {

using ::lockstep::testing::WriteFile;

constexpr absl::Duration kOften = absl::Milliseconds(5);

// What a watch was given, in order; "bad" is refused.
class Taker {
 public:
  absl::Status Take(const FileWatch::Contents& contents) {
    absl::MutexLock lock(&mutex_);
    taken_.push_back(contents);
    if (contents[0] == "bad") return absl::InvalidArgumentError("it is bad.");
    return absl::OkStatus();
  }

  FileWatch::Take AsFunction() {
    return
        [this](const FileWatch::Contents& contents) { return Take(contents); };
  }

  // Fails by the test's time-out.
  void Await(const FileWatch::Contents& last) {
    const auto is_there = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return !taken_.empty() && taken_.back() == last;
    };
    absl::MutexLock lock(&mutex_);
    mutex_.Await(absl::Condition(&is_there));
  }

  size_t number() {
    absl::MutexLock lock(&mutex_);
    return taken_.size();
  }

 private:
  absl::Mutex mutex_;
  std::vector<FileWatch::Contents> taken_ ABSL_GUARDED_BY(mutex_);
};

std::string Path(const std::string& name) {
  return ::testing::TempDir() + name;
}

TEST(FileWatch, GivesAllFilesAtOnceAndAgainWhenOneChanges) {
  WriteFile(Path("one"), "1");
  WriteFile(Path("two"), "2");
  Taker taker;
  const auto watch = FileWatch::Start(
      {{"one", Path("one")}, {"two", Path("two")}}, taker.AsFunction(), kOften);
  ASSERT_TRUE(watch.ok()) << watch.status();
  taker.Await({"1", "2"});
  EXPECT_EQ(taker.number(), 1);
  WriteFile(Path("two"), "zwei");
  taker.Await({"1", "zwei"});
}

TEST(FileWatch, GoesOnAfterWhatIsRefusedOrGone) {
  WriteFile(Path("file"), "good");
  Taker taker;
  const auto watch =
      FileWatch::Start({{"file", Path("file")}}, taker.AsFunction(), kOften);
  ASSERT_TRUE(watch.ok()) << watch.status();
  WriteFile(Path("file"), "bad");
  taker.Await({"bad"});
  ASSERT_EQ(unlink(Path("file").c_str()), 0);
  WriteFile(Path("file"), "better");
  taker.Await({"better"});
}

TEST(FileWatch, SeesALinkThatIsSwapped) {
  WriteFile(Path("old"), "old");
  WriteFile(Path("new"), "new");
  ASSERT_EQ(symlink(Path("old").c_str(), Path("link").c_str()), 0);
  Taker taker;
  const auto watch =
      FileWatch::Start({{"file", Path("link")}}, taker.AsFunction(), kOften);
  ASSERT_TRUE(watch.ok()) << watch.status();
  ASSERT_EQ(symlink(Path("new").c_str(), Path("next").c_str()), 0);
  ASSERT_EQ(rename(Path("next").c_str(), Path("link").c_str()), 0);
  taker.Await({"new"});
}

TEST(FileWatch, AStartWithoutAGoodFileIsOneSentence) {
  Taker taker;
  const std::string path = Path("nowhere");
  EXPECT_EQ(
      FileWatch::Start({{"api_keys_file", path}}, taker.AsFunction()).status(),
      absl::InvalidArgumentError(absl::StrCat(
          "--api_keys_file is \"", path,
          "\", which can not be opened: No such file or directory.")));
  WriteFile(Path("large"), std::string(FileWatch::kMaxBytes + 1, 'a'));
  EXPECT_TRUE(absl::StrContains(
      FileWatch::Start({{"key", Path("large")}}, taker.AsFunction())
          .status()
          .message(),
      "is larger than 1048576 bytes."));
  EXPECT_EQ(taker.number(), 0);
  WriteFile(Path("rotten"), "bad");
  EXPECT_EQ(
      FileWatch::Start({{"key", Path("rotten")}}, taker.AsFunction()).status(),
      absl::InvalidArgumentError("it is bad."));
}

TEST(FileWatch, AFolderIsNoFile) {
  Taker taker;
  EXPECT_TRUE(absl::StrContains(
      FileWatch::Start({{"key", ::testing::TempDir()}}, taker.AsFunction())
          .status()
          .message(),
      "can not be read"));
}

}  // namespace
}  // namespace lockstep
