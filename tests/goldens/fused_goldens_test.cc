// The tiny mixtures again, with all experts of a layer as one tensor: the same
// model, down to its fingerprint and its answers.
#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_replace.h>
#include <absl/strings/string_view.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>
#include <vector>

#include "tests/goldens/golden_check.h"
#include "tests/testing/safetensors_writer.h"
#include "tests/testing/write_file.h"
#include "worker/checkpoint/safetensors_folder.h"
#include "worker/weights/model_files.h"

namespace lockstep::goldens {
namespace {

namespace fs = std::filesystem;

using ::lockstep::testing::SafetensorsWriter;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kMixtures[] = {"dots1",   "glm4_moe",  "glm4_moe_air",
                                     "mixtral", "qwen2_moe", "qwen3_moe"};

constexpr char kTiny[] = "tests/goldens/tiny";

// Writes the model of a folder as GGUF; its bytes.
std::string Converted(const fs::path& folder, const std::string& flags = "") {
  const fs::path out = fs::path(::testing::TempDir()) / "converted.gguf";
  const std::string command = absl::StrCat(
      "PYTHONDONTWRITEBYTECODE=1 python3 tools/convert_to_gguf.py ",
      folder.string(), " ", out.string(), " ", flags);
  EXPECT_EQ(std::system(command.c_str()), 0) << command;
  std::ifstream file(out, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

std::string TypeName(const Tensor& tensor) {
  return kernels::DTypeName(tensor.type);
}

absl::string_view Bytes(const Tensor& tensor) {
  return {reinterpret_cast<const char*>(tensor.bytes.data()),
          tensor.bytes.size()};
}

void ExpectTheSameModel(const ModelFiles& one, const ModelFiles& other) {
  EXPECT_EQ(other.fingerprint, one.fingerprint);
  ASSERT_EQ(other.tensors->Names(), one.tensors->Names());
  for (const std::string& name : one.tensors->Names()) {
    const auto a = one.tensors->Get(name), b = other.tensors->Get(name);
    EXPECT_EQ(b->shape, a->shape) << name;
    EXPECT_EQ(Bytes(*b), Bytes(*a)) << name;
  }
}

// Writes a folder's tensors with experts as transformers has them in memory.
class Fuser {
 public:
  Fuser(const TensorSource& source, bool is_mixtral)
      : source_(source), is_mixtral_(is_mixtral) {}

  std::string Write() {
    for (const std::string& name : source_.Names()) {
      const size_t experts = name.find(".experts.");
      if (experts == std::string::npos) {
        const Tensor tensor = *source_.Get(name);
        writer_.AddTensor(NewName(name), TypeName(tensor), tensor.shape,
                          Bytes(tensor));
      } else if (absl::StrContains(name, ".experts.0.") &&
                 absl::EndsWith(
                     name, is_mixtral_ ? "w1.weight" : "gate_proj.weight")) {
        FuseLayer(name.substr(0, experts + 9));
      }
    }
    return writer_.Finish();
  }

 private:
  std::string NewName(const std::string& name) const {
    return absl::StrReplaceAll(name, {{"block_sparse_moe", "mlp"}});
  }

  // `prefix` is "model.layers.1.mlp.experts.".
  void FuseLayer(const std::string& prefix) {
    if (is_mixtral_) {
      Fuse(prefix, "gate_up_proj", {"w1", "w3"});
      Fuse(prefix, "down_proj", {"w2"});
    } else {
      Fuse(prefix, "gate_up_proj", {"gate_proj", "up_proj"});
      Fuse(prefix, "down_proj", {"down_proj"});
    }
  }

  void Fuse(const std::string& prefix, const char* fused,
            const std::vector<std::string>& projections) {
    std::string bytes;
    std::string type;
    int64_t experts = 0, rows = 0, cols = 0;
    for (;; ++experts) {
      rows = 0;
      for (const std::string& projection : projections) {
        const auto tensor = source_.Get(
            absl::StrCat(prefix, experts, ".", projection, ".weight"));
        if (!tensor.ok()) break;
        type = TypeName(*tensor);
        rows += tensor->shape[0];
        cols = tensor->shape[1];
        absl::StrAppend(&bytes, Bytes(*tensor));
      }
      if (rows == 0) break;
      rows_ = rows;
    }
    writer_.AddTensor(NewName(prefix + fused), type, {experts, rows_, cols},
                      bytes);
  }

  const TensorSource& source_;
  const bool is_mixtral_;
  int64_t rows_ = 0;
  SafetensorsWriter writer_;
};

// The model at `from`, written to `to`.
void WriteFused(const fs::path& from, const fs::path& to, bool is_mixtral) {
  fs::create_directories(to);
  for (const char* file :
       {"config.json", "tokenizer.json", "tokenizer_config.json"}) {
    fs::copy_file(from / file, to / file, fs::copy_options::overwrite_existing);
  }
  const auto source = SafetensorsFolder::Open(from);
  ASSERT_TRUE(source.ok()) << source.status();
  testing::WriteFile(to / "model.safetensors",
                     Fuser(**source, is_mixtral).Write());
}

TEST(FusedGoldens, AreTheSameModelsAndAnswerAlike) {
  const fs::path tiny = kTiny;
  const fs::path root = fs::path(::testing::TempDir()) / "fused";
  int models = 0;
  for (const std::string name : kMixtures) {
    SCOPED_TRACE(name);
    const fs::path from = tiny / name / "bf16", to = root / name / "bf16";
    WriteFused(from, to, name == "mixtral");
    const std::string goldens = "goldens.bf16.safetensors";
    fs::copy_file(tiny / name / goldens, root / name / goldens,
                  fs::copy_options::overwrite_existing);
    const auto stored = SafetensorsFolder::Open(to);
    ASSERT_TRUE(stored.ok()) << stored.status();
    for (const std::string& tensor : (*stored)->Names()) {
      EXPECT_THAT(tensor, Not(HasSubstr(".experts.0")));
    }
    const auto apart = OpenModel(from), fused = OpenModel(to);
    ASSERT_TRUE(apart.ok() && fused.ok()) << fused.status();
    ExpectTheSameModel(*apart, *fused);
    ++models;
  }
  GoldenCheckOptions options;
  options.folder = root;
  options.numerics = {kernels::Arithmetic::kStrict, kernels::KvType::kF32};
  const auto counts = CheckGoldens(options, std::cout);
  ASSERT_TRUE(counts.ok()) << counts.status();
  EXPECT_EQ(counts->failed, 0);
  // On 1, 2, 3, 4 and 8 ranks, with parts of experts and whole ones, and the
  // same bits.
  EXPECT_EQ(counts->passed, models * (5 + 5 + 1));
}

// The folder's experts in one tensor or apart; in the file gates and ups in one
// tensor or apart.
TEST(FusedGoldens, GgufFilesOfThemAreTheSameModels) {
  const fs::path root = fs::path(::testing::TempDir()) / "gguf";
  for (const std::string name : kMixtures) {
    SCOPED_TRACE(name);
    const fs::path from = fs::path(kTiny) / name / "bf16", to = root / name;
    WriteFused(from, to, name == "mixtral");
    const std::string file = Converted(from);
    EXPECT_TRUE(Converted(to) == file);
    const std::string fused = Converted(from, "--fuse_gate_up");
    EXPECT_TRUE(Converted(to, "--fuse_gate_up") == fused);
    EXPECT_TRUE(absl::StrContains(fused, ".ffn_gate_up_exps.weight"));
    EXPECT_FALSE(absl::StrContains(fused, ".ffn_up_exps.weight"));
    testing::WriteFile(root / "apart.gguf", file);
    testing::WriteFile(root / "fused.gguf", fused);
    const auto one = OpenModel(root / "apart.gguf");
    const auto other = OpenModel(root / "fused.gguf");
    ASSERT_TRUE(one.ok() && other.ok()) << one.status() << other.status();
    ExpectTheSameModel(*one, *other);
  }
}

}  // namespace
}  // namespace lockstep::goldens
