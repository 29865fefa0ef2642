#include "tests/testing/tiny_gguf.h"

#include <absl/strings/match.h>
#include <absl/strings/str_replace.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <numbers>

#include "tests/testing/encode_row.h"
#include "tests/testing/gguf_writer.h"
#include "tests/testing/tiny_tokenizer.h"
#include "tests/testing/write_file.h"

namespace lockstep::testing {
namespace {

using kernels::DType;

// ggml's numbers.
uint32_t GgmlType(DType type) {
  switch (type) {
    case DType::kF32:
      return 0;
    case DType::kF16:
      return 1;
    case DType::kQ4_0:
      return 2;
    case DType::kQ4_1:
      return 3;
    case DType::kQ8_0:
      return 8;
    case DType::kQ4_K:
      return 12;
    case DType::kQ5_K:
      return 13;
    case DType::kQ6_K:
      return 14;
    case DType::kBF16:
      return 30;
    default:
      break;
  }
  std::abort();
}

std::string GgufName(const std::string& name) {
  return absl::StrReplaceAll(name, {
                                       {"model.layers.", "blk."},
                                       {"model.embed_tokens", "token_embd"},
                                       {"model.norm", "output_norm"},
                                       {"lm_head", "output"},
                                       {"input_layernorm", "attn_norm"},
                                       {"self_attn.q_proj", "attn_q"},
                                       {"self_attn.k_proj", "attn_k"},
                                       {"self_attn.v_proj", "attn_v"},
                                       {"self_attn.qkv_proj", "attn_qkv"},
                                       {"self_attn.o_proj", "attn_output"},
                                       {"self_attn.q_norm", "attn_q_norm"},
                                       {"self_attn.k_norm", "attn_k_norm"},
                                       {"post_attention_layernorm", "ffn_norm"},
                                       {"mlp.gate_proj", "ffn_gate"},
                                       {"mlp.up_proj", "ffn_up"},
                                       {"mlp.gate_up_proj", "ffn_up"},
                                       {"mlp.down_proj", "ffn_down"},
                                   });
}

bool RotatesNeighbours(const std::string& architecture) {
  return architecture == "llama" || architecture == "mistral" ||
         architecture == "smollm3";
}

// Row i of a head's first half and row i of its second become neighbours.
void MakeHalvesNeighbours(TinyTensor& tensor, int head_dim) {
  const TinyTensor halves = tensor;
  const int64_t cols = tensor.shape.back();
  for (int64_t row = 0; row < tensor.shape[0]; ++row) {
    const int64_t head = row / head_dim, in_head = row % head_dim;
    const int64_t from =
        head * head_dim + in_head % 2 * (head_dim / 2) + in_head / 2;
    std::copy_n(&halves.values[from * cols], cols, &tensor.values[row * cols]);
  }
}

// What ggml divides each inverse frequency by: the Llama 3.1 rule.
std::string Llama3Factors(const TinyModel& model) {
  constexpr double kFactor = 8, kLow = 1, kHigh = 4, kOriginal = 64;
  std::string bytes;
  for (int i = 0; i < model.head_dim / 2; ++i) {
    const double wavelength =
        2 * std::numbers::pi *
        std::pow(double{model.rope_theta}, 2.0 * i / model.head_dim);
    double smooth = (kOriginal / wavelength - kLow) / (kHigh - kLow);
    smooth = std::clamp(smooth, 0.0, 1.0);
    const float factor = 1 / ((1 - smooth) / kFactor + smooth);
    bytes += EncodeRow(DType::kF32, {&factor, 1});
  }
  return bytes;
}

void AddTokenizer(GgufWriter& writer) {
  const TinyTokenizer tokenizer = MakeTinyTokenizer();
  std::vector<std::string> merges;
  for (const auto& [left, right] : tokenizer.merges) {
    merges.push_back(left + " " + right);
  }
  constexpr int kNormal = 1, kControl = 3;
  std::vector<int32_t> types(TinyTokenizer::kVocabSize, kNormal);
  std::fill_n(types.begin(), TinyTokenizer::kNumSpecial, kControl);
  writer.AddString("tokenizer.ggml.model", "gpt2");
  writer.AddString("tokenizer.ggml.pre", "gpt-2");
  writer.AddStrings("tokenizer.ggml.tokens", tokenizer.tokens);
  writer.AddInts("tokenizer.ggml.token_type", types);
  writer.AddStrings("tokenizer.ggml.merges", merges);
  writer.AddBool("tokenizer.ggml.add_bos_token", false);
  writer.AddString("tokenizer.chat_template", tokenizer.chat_template);
}

}  // namespace

GgufWriter MakeGguf(const TinyModel& model) {
  GgufWriter writer;
  const std::string arch = model.architecture + ".";
  writer.AddString("general.architecture", model.architecture);
  writer.AddUint(arch + "block_count", model.num_layers);
  writer.AddUint(arch + "context_length", model.max_context);
  writer.AddUint(arch + "embedding_length", model.hidden_size);
  writer.AddUint(arch + "feed_forward_length", model.intermediate_size);
  writer.AddUint(arch + "attention.head_count", model.num_heads);
  writer.AddUint(arch + "attention.head_count_kv", model.num_kv_heads);
  writer.AddUint(arch + "attention.key_length", model.head_dim);
  writer.AddUint(arch + "attention.value_length", model.head_dim);
  writer.AddUint(arch + "rope.dimension_count", model.head_dim);
  writer.AddUint(arch + "vocab_size", model.vocab_size);
  writer.AddFloat(arch + "rope.freq_base", model.rope_theta);
  writer.AddFloat(arch + "attention.layer_norm_rms_epsilon", 1e-6f);
  writer.AddUint("tokenizer.ggml.bos_token_id", model.bos_token_id);
  writer.AddUint("tokenizer.ggml.eos_token_id", model.eos_token_id);
  if (model.window > 0) {
    writer.AddUint(arch + "attention.sliding_window", model.window);
  }
  if (model.vocab_size == TinyTokenizer::kVocabSize) AddTokenizer(writer);
  if (model.llama3_rope) {
    writer.AddUint(arch + "rope.scaling.original_context_length", 64);
    writer.AddTensor("rope_freqs.weight", {model.head_dim / 2},
                     GgmlType(DType::kF32), Llama3Factors(model));
  }
  for (TinyTensor& tensor : MakeTensors(model)) {
    const bool rotates = absl::StrContains(tensor.name, "q_proj") ||
                         absl::StrContains(tensor.name, "k_proj");
    if (rotates && RotatesNeighbours(model.architecture)) {
      MakeHalvesNeighbours(tensor, model.head_dim);
    }
    writer.AddTensor(GgufName(tensor.name), tensor.shape,
                     GgmlType(StoredType(model, tensor)),
                     StoredBytes(model, tensor));
  }
  return writer;
}

void WriteGguf(const TinyModel& model, const std::string& path) {
  WriteFile(path, MakeGguf(model).Finish());
}

}  // namespace lockstep::testing
