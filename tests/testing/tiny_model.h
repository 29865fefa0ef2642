#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "kernels/weights/dtype.h"

namespace lockstep::testing {

// A random model, small enough to be made anew by each test. The values are a
// function of seed and tensor name alone: a Hugging Face folder and a GGUF file
// of one spec are the same model, where the types can hold the values.
//
//   TinyModel model;
//   model.architecture = "qwen3";
//   WriteHuggingFaceFolder(model, ::testing::TempDir() + "qwen3");
//
// WriteGguf, which adds a tokenizer, is in tiny_gguf.h.
struct TinyModel {
  // Or "mistral"; "phi3", whose projections are fused; "qwen2", which has
  // biases; "qwen3", with q and k norms; "smollm3", whose every fourth layer
  // does not rotate. In folders only: "gemma3", with four norms and a window of
  // every other layer; "olmo2", whose norms are of whole projections and of
  // what blocks add; "qwen2moe", six experts, two a token, and a shared one.
  std::string architecture = "llama";
  int vocab_size = 512;
  int hidden_size = 64;
  int intermediate_size = 128;
  int num_layers = 2;
  int num_heads = 8;
  int num_kv_heads = 2;
  int head_dim = 16;
  int max_context = 512;  // tokens
  float rope_theta = 10000;
  bool llama3_rope = false;  // scaled by 8 from 64 positions
  int window = 0;            // of mistral and phi3; 0: none
  bool tied_embeddings = false;
  // In folders: as transformers' class of the decoder alone saves it, by names
  // without "model.".
  bool without_head = false;
  int bos_token_id = 1;
  int eos_token_id = 2;
  uint64_t seed = 1;

  // Of all matrices; norms are always F32. A Hugging Face folder takes F32, F16
  // and BF16.
  kernels::DType type = kernels::DType::kF32;
  // Of o and down, where theirs is another.
  std::optional<kernels::DType> row_parallel_type;
  // Of down, where it differs from o's.
  std::optional<kernels::DType> down_type;

  // What it computes of a sequence with this id is NaN.
  std::optional<uint32_t> nan_token_id;

  // For tests of bad files: these names are left out.
  std::vector<std::string> left_out;
};

// A tensor of the model, by Hugging Face's name.
struct TinyTensor {
  std::string name;
  std::vector<int64_t> shape;
  std::vector<float> values;  // before they are rounded to the stored type
};

std::vector<TinyTensor> MakeTensors(const TinyModel& model);

nlohmann::json MakeHuggingFaceConfig(const TinyModel& model);

// config.json and model.safetensors, or `num_files` of them with an index;
// `folder` is created. There is no tokenizer.
void WriteHuggingFaceFolder(const TinyModel& model, const std::string& folder,
                            int num_files = 1);

// How a tensor of the model lies in a file.
kernels::DType StoredType(const TinyModel& model, const TinyTensor& tensor);
std::string StoredBytes(const TinyModel& model, const TinyTensor& tensor);

}  // namespace lockstep::testing
