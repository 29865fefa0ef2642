#include "worker/checkpoint/gguf_source.h"

#include <absl/strings/str_cat.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/testing/gguf_writer.h"
#include "worker/checkpoint/gguf_names.h"
#include "worker/model_spec/architecture.h"

namespace lockstep {
namespace {

using kernels::DType;
using ::lockstep::testing::GgufWriter;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// `bytes` must outlive the result.
absl::StatusOr<std::unique_ptr<GgufSource>> Read(const std::string& bytes) {
  auto file = GgufFile::Parse(
      absl::MakeConstSpan(reinterpret_cast<const uint8_t*>(bytes.data()),
                          bytes.size()),
      "m.gguf");
  if (!file.ok()) return file.status();
  return GgufSource::Create(*std::move(file));
}

TEST(GgufSource, KnowsGgmlsTypesByNumber) {
  struct Case {
    uint32_t number;
    DType type;
    size_t row_bytes;  // of 256 values
  };
  const Case cases[] = {
      {0, DType::kF32, 1024},    {1, DType::kF16, 512},
      {2, DType::kQ4_0, 144},    {3, DType::kQ4_1, 160},
      {8, DType::kQ8_0, 272},    {12, DType::kQ4_K, 144},
      {13, DType::kQ5_K, 176},   {14, DType::kQ6_K, 210},
      {30, DType::kBF16, 512},   {6, DType::kQ5_0, 176},
      {7, DType::kQ5_1, 192},    {10, DType::kQ2_K, 84},
      {11, DType::kQ3_K, 110},   {20, DType::kIQ4_NL, 144},
      {23, DType::kIQ4_XS, 136}, {39, DType::kMXFP4, 136},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(kernels::DTypeName(c.type));
    GgufWriter writer;
    writer.AddTensor("w", {2, 256}, c.number,
                     std::string(2 * c.row_bytes, 'x'));
    const std::string bytes = writer.Finish();
    const auto source = Read(bytes);
    ASSERT_TRUE(source.ok()) << source.status();
    const auto tensor = (*source)->Get("w");
    ASSERT_TRUE(tensor.ok());
    EXPECT_EQ(tensor->type, c.type);
    EXPECT_THAT(tensor->shape, ElementsAre(2, 256));
    EXPECT_EQ(std::string(tensor->bytes.begin(), tensor->bytes.end()),
              std::string(2 * c.row_bytes, 'x'));
  }
}

TEST(GgufSource, ShowsTensorsByHuggingFacesNames) {
  GgufWriter writer;
  writer.AddTensor("output_norm.weight", {1}, 0, "abcd");
  writer.AddTensor("blk.10.ffn_up.weight", {1}, 0, "abcd");
  const std::string bytes = writer.Finish();
  const auto source = Read(bytes);
  ASSERT_TRUE(source.ok()) << source.status();
  EXPECT_THAT(
      (*source)->Names(),
      ElementsAre("model.layers.10.mlp.up_proj.weight", "model.norm.weight"));
  EXPECT_EQ((*source)->Get("output.weight").status(),
            absl::NotFoundError("m.gguf has no tensor output.weight."));
}

TEST(GgufSource, ShowsExpertsOneByOne) {
  GgufWriter writer;
  writer.AddString("general.architecture", "qwen2moe");
  writer.AddUint("qwen2moe.expert_count", 2);
  writer.AddTensor("blk.0.ffn_down_exps.weight", {2, 1, 2}, 0,
                   "abcdefghABCDEFGH");
  writer.AddTensor("blk.0.ffn_gate_inp_shexp.weight", {2}, 0, "12345678");
  const std::string bytes = writer.Finish();
  const auto source = Read(bytes);
  ASSERT_TRUE(source.ok()) << source.status();
  EXPECT_THAT((*source)->Names(),
              ElementsAre("model.layers.0.mlp.experts.0.down_proj.weight",
                          "model.layers.0.mlp.experts.1.down_proj.weight",
                          "model.layers.0.mlp.shared_expert_gate.weight"));
  const auto second =
      (*source)->Get("model.layers.0.mlp.experts.1.down_proj.weight");
  EXPECT_THAT(second->shape, ElementsAre(1, 2));
  EXPECT_EQ(std::string(second->bytes.begin(), second->bytes.end()),
            "ABCDEFGH");
  EXPECT_THAT(
      (*source)->Get("model.layers.0.mlp.shared_expert_gate.weight")->shape,
      ElementsAre(1, 2));
}

struct TypeCase {
  uint32_t number;
  size_t row_bytes;  // of 256 values
};

// Of two experts with a gate and an up of three rows.
TEST(GgufSource, GateAndUpMayBeOneTensorOfAnyType) {
  const TypeCase cases[] = {{0, 1024}, {1, 512},  {2, 144},  {3, 160},
                            {6, 176},  {7, 192},  {8, 272},  {10, 84},
                            {11, 110}, {12, 144}, {13, 176}, {14, 210},
                            {20, 144}, {23, 136}, {30, 512}, {39, 136}};
  for (const TypeCase& c : cases) {
    SCOPED_TRACE(c.number);
    const size_t size = 3 * c.row_bytes;
    const std::string gates[] = {std::string(size, 'a'),
                                 std::string(size, 'b')};
    const std::string ups[] = {std::string(size, 'A'), std::string(size, 'B')};
    GgufWriter apart, fused;
    for (GgufWriter* writer : {&apart, &fused}) {
      writer->AddString("general.architecture", "qwen3moe");
      writer->AddUint("qwen3moe.expert_count", 2);
    }
    apart.AddTensor("blk.0.ffn_gate_exps.weight", {2, 3, 256}, c.number,
                    gates[0] + gates[1]);
    apart.AddTensor("blk.0.ffn_up_exps.weight", {2, 3, 256}, c.number,
                    ups[0] + ups[1]);
    fused.AddTensor("blk.0.ffn_gate_up_exps.weight", {2, 6, 256}, c.number,
                    gates[0] + ups[0] + gates[1] + ups[1]);
    const std::string apart_bytes = apart.Finish();
    const std::string fused_bytes = fused.Finish();
    const auto one = Read(apart_bytes), other = Read(fused_bytes);
    ASSERT_TRUE(one.ok() && other.ok()) << other.status();
    ASSERT_EQ((*other)->Names(), (*one)->Names());
    ASSERT_EQ((*one)->Names().size(), 4);
    for (const std::string& name : (*one)->Names()) {
      const auto a = (*one)->Get(name), b = (*other)->Get(name);
      EXPECT_EQ(b->name, name);
      EXPECT_EQ(b->type, a->type);
      EXPECT_EQ(b->shape, a->shape);
      EXPECT_EQ(b->bytes, a->bytes) << name;
    }
  }
}

const Architecture& Named(const char* name, bool has_experts = false) {
  return *FindGgufArchitecture(name, has_experts);
}

TEST(GgufNames, DependOnTheArchitecture) {
  struct Case {
    const Architecture& architecture;
    const char* gguf;
    const char* hugging_face;  // after "model.layers.7."
  };
  const Case cases[] = {
      {Named("llama"), "ffn_up", "mlp.up_proj"},
      {Named("phi3"), "ffn_up", "mlp.gate_up_proj"},
      {Named("llama"), "ffn_norm", "post_attention_layernorm"},
      {Named("gemma2"), "ffn_norm", "pre_feedforward_layernorm"},
      {Named("gemma2"), "post_attention_norm", "post_attention_layernorm"},
      {Named("olmo2"), "post_ffw_norm", "post_feedforward_layernorm"},
      {Named("glm4"), "post_attention_norm", "post_self_attn_layernorm"},
      {Named("chatglm"), "ffn_norm", "post_attention_layernorm"},
      {Named("glm4moe", true), "post_attention_norm",
       "post_attention_layernorm"},
      {Named("glm4moe", true), "ffn_up_shexp", "mlp.shared_experts.up_proj"},
      {Named("qwen2moe", true), "ffn_up_shexp", "mlp.shared_expert.up_proj"},
      {Named("qwen3moe", true), "ffn_gate_inp", "mlp.gate"},
      {Named("llama", true), "ffn_gate_inp", "block_sparse_moe.gate"},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(HuggingFaceName(absl::StrCat("blk.7.", c.gguf, ".weight"),
                              c.architecture),
              absl::StrCat("model.layers.7.", c.hugging_face, ".weight"))
        << c.architecture.name;
  }
}

TEST(GgufNames, BiasesAreNotNamedAlike) {
  EXPECT_EQ(HuggingFaceName("blk.7.exp_probs_b.bias", Named("dots1", true)),
            "model.layers.7.mlp.gate.e_score_correction_bias");
  EXPECT_EQ(HuggingFaceName("blk.7.attn_qkv.bias", Named("chatglm")),
            "model.layers.7.self_attn.qkv_proj.bias");
}

TEST(GgufNames, StayAsTheyAreWhereTheyAreNotKnown) {
  for (const char* name :
       {"rope_freqs.weight", "blk.0.attn_output.bias", "blk.0", "blk.", ""}) {
    EXPECT_EQ(HuggingFaceName(name, Named("llama")), name);
  }
}

TEST(GgufSource, RefusesTensorsThatAreNotAsTheySay) {
  struct Case {
    void (*add)(GgufWriter&);
    const char* message;
  };
  const Case cases[] = {
      {[](GgufWriter& w) {
         w.AddTensor("w", {2, 256}, 21, "x");
       },
       "m.gguf: tensor \"w\" is of ggml's type 21 (IQ3_S), which is not "
       "supported; supported are F32, F16, Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q2_K, "
       "Q3_K, Q4_K, Q5_K, Q6_K, IQ4_NL, IQ4_XS, BF16, MXFP4."},
      {[](GgufWriter& w) {
         w.AddTensor("w", {2, 256}, 999, "x");
       },
       "ggml's type 999 (a type that is not known)"},
      {[](GgufWriter& w) {
         w.AddTensor("w", {2, 48}, 8, "x");
       },
       "m.gguf: tensor \"w\" has rows of 48 values, expected a multiple of 32 "
       "for Q8_0."},
      {[](GgufWriter& w) {
         w.AddTensor("w", {2, 288}, 12, "x");
       },
       "m.gguf: tensor \"w\" has rows of 288 values, expected a multiple of "
       "256 for Q4_K."},
      {[](GgufWriter& w) {
         w.AddTensor("w", {2, 2}, 0, "x");
       },
       "m.gguf: tensor \"w\" takes 4 blocks of 4 bytes from byte"},
      {[](GgufWriter& w) {
         w.AddTensor("w", {1ll << 31, 1ll << 31}, 0, "x");
       },
       "takes 4611686018427387904 blocks of 4 bytes"},
      {[](GgufWriter& w) {
         w.AddTensor("w", {16}, 0, std::string(64, 'x'));
         w.AddTensorInfo("v", {1}, 0, 32);
       },
       "tensor \"v\" begins at byte"},
      {[](GgufWriter& w) {
         w.AddTensor("output.weight", {1}, 0, "abcd");
         w.AddTensor("lm_head.weight", {1}, 0, "abcd");
       },
       "there under another name"},
      {[](GgufWriter& w) {
         w.AddTensor("blk.0.ffn_gate_up_exps.weight", {1, 3, 1}, 0,
                     std::string(12, 'x'));
       },
       "m.gguf: tensor \"blk.0.ffn_gate_up_exps.weight\" has 3 rows for each "
       "expert, expected as many of gate as of up."},
      {[](GgufWriter& w) {
         w.AddTensor("blk.0.ffn_up_exps.weight", {1, 1, 1}, 0, "abcd");
         w.AddTensor("blk.0.ffn_gate_up_exps.weight", {1, 2, 1}, 0, "abcdabcd");
       },
       "tensor \"blk.0.ffn_up_exps.weight\" is there under another name, or "
       "in another file, \"blk.0.ffn_gate_up_exps.weight\", as well."},
      {[](GgufWriter& w) {
         w.AddTensor("blk.0.ffn_up_exps.weight", {1, 1, 1}, 0, "abcd");
         w.AddTensor("model.layers.0.mlp.experts.0.up_proj.weight", {1, 1}, 0,
                     "abcd");
       },
       "m.gguf: tensor \"model.layers.0.mlp.experts.0.up_proj.weight\" is "
       "there, and a part of \"blk.0.ffn_up_exps.weight\" as well."},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.message);
    GgufWriter writer;
    writer.AddString("general.architecture", "qwen3moe");
    writer.AddUint("qwen3moe.expert_count", 1);
    c.add(writer);
    const std::string bytes = writer.Finish();
    const auto source = Read(bytes);
    ASSERT_FALSE(source.ok());
    EXPECT_THAT(std::string(source.status().message()), HasSubstr(c.message));
  }
}

}  // namespace
}  // namespace lockstep
