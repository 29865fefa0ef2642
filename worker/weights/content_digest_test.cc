#include "worker/weights/content_digest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "tests/testing/tiny_model.h"
#include "worker/weights/model_files.h"

namespace lockstep {
namespace {

using ::lockstep::testing::TinyModel;
using ::lockstep::testing::WriteHuggingFaceFolder;

// Large enough that the fingerprint does not read all of its embedding.
TinyModel Large() {
  TinyModel model;
  model.vocab_size = 4096;
  return model;
}

std::string NewFolder(const std::string& name, int num_files = 1) {
  const std::string folder = ::testing::TempDir() + name;
  std::filesystem::remove_all(folder);
  WriteHuggingFaceFolder(Large(), folder, num_files);
  return folder;
}

ContentDigest DigestOf(const ModelFiles& model) {
  const auto digest = DigestContent(model.tensors->stored());
  EXPECT_TRUE(digest.ok()) << digest.status();
  return *digest;
}

// Flips a bit of the embedding, `at` bytes after its begin.
void Damage(const std::string& folder, size_t at) {
  const auto model = OpenModel(folder);
  const auto tensor = model->tensors->Get("model.embed_tokens.weight");
  const std::string file = model->tensors->FileOf("model.embed_tokens.weight");
  std::ifstream in(file, std::ios::binary);
  std::string content((std::istreambuf_iterator<char>(in)),
                      std::istreambuf_iterator<char>());
  const std::string bytes(tensor->bytes.begin(), tensor->bytes.end());
  content[content.find(bytes) + at] ^= 1;
  std::ofstream(file, std::ios::binary) << content;
}

TEST(ContentDigest, FindsABitThatTheFingerprintDoesNot) {
  const std::string good = NewFolder("good"), bad = NewFolder("bad");
  Damage(bad, 100'000);
  const auto good_model = OpenModel(good), bad_model = OpenModel(bad);
  EXPECT_EQ(good_model->fingerprint, bad_model->fingerprint);
  EXPECT_NE(DigestOf(*good_model).all, DigestOf(*bad_model).all);
}

TEST(ContentDigest, IsTheSameHoweverTheModelIsSplitIntoFiles) {
  EXPECT_EQ(DigestOf(*OpenModel(NewFolder("one"))).all,
            DigestOf(*OpenModel(NewFolder("three", 3))).all);
}

TEST(ContentDigest, NamesTheFileThatIsDamaged) {
  const std::string folder = NewFolder("files", 3);
  const ContentDigest before = DigestOf(*OpenModel(folder));
  ASSERT_EQ(before.of_file.size(), 3);
  const std::string damaged =
      OpenModel(folder)->tensors->FileOf("model.embed_tokens.weight");
  Damage(folder, 50'000);
  const ContentDigest after = DigestOf(*OpenModel(folder));
  for (const auto& [file, digest] : before.of_file) {
    EXPECT_EQ(after.of_file.at(file) == digest, file != damaged) << file;
  }
}

}  // namespace
}  // namespace lockstep
