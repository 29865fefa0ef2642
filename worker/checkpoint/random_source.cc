#include "worker/checkpoint/random_source.h"

#include <absl/strings/str_cat.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <utility>

namespace lockstep {
namespace {

// Steele, Lea and Flood, "Fast splittable pseudorandom number generators"
// (OOPSLA 2014): the finalizer of SplitMix64.
uint64_t Mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
  x = (x ^ x >> 27) * 0x94d049bb133111eb;
  return x ^ x >> 31;
}

uint64_t SeedOf(absl::string_view name) {
  uint64_t seed = name.size();
  for (const char c : name) seed = Mix(seed ^ static_cast<uint8_t>(c));
  return seed;
}

uint16_t ToBFloat16(float value) {
  return static_cast<uint16_t>(std::bit_cast<uint32_t>(value) >> 16);
}

// Uniform, of the variance that keeps that of what is multiplied by them.
class RandomMatrix final : public RowReader {
 public:
  RandomMatrix(absl::string_view name, int64_t cols)
      : seed_(SeedOf(name)),
        cols_(cols),
        scale_(std::sqrt(3.0f / static_cast<float>(cols)) / 0x1p15f) {}

  void Read(const TensorPart& part, uint8_t* out) const override {
    const int64_t end = part.row_begin + part.rows;
    for (int64_t row = part.row_begin; row < end; ++row) {
      for (int64_t i = 0; i < part.cols; ++i) {
        const uint16_t value = At(row * cols_ + part.col_begin + i);
        std::memcpy(out, &value, sizeof(value));
        out += sizeof(value);
      }
    }
  }
  std::string format() const override { return "random BF16"; }

 private:
  // Four to a number.
  uint16_t At(int64_t index) const {
    const uint64_t four = Mix(seed_ + static_cast<uint64_t>(index / 4));
    const auto bits = static_cast<int16_t>(four >> (16 * (index % 4)));
    return ToBFloat16(static_cast<float>(bits) * scale_);
  }

  const uint64_t seed_;
  const int64_t cols_;
  const float scale_;
};

class Ones final : public RowReader {
 public:
  void Read(const TensorPart& part, uint8_t* out) const override {
    const uint16_t one = ToBFloat16(1);
    for (int64_t i = 0; i < part.rows * part.cols; ++i) {
      std::memcpy(out + i * sizeof(one), &one, sizeof(one));
    }
  }
  std::string format() const override { return "ones"; }
};

}  // namespace

RandomSource::RandomSource(
    std::string path, const std::map<std::string, std::vector<int64_t>>& shapes)
    : path_(std::move(path)) {
  for (const auto& [name, shape] : shapes) {
    if (shape.size() == 1) {
      readers_.push_back(std::make_unique<Ones>());
    } else {
      readers_.push_back(std::make_unique<RandomMatrix>(name, shape.back()));
    }
    tensors_[name] = {
        name, kernels::DType::kBF16, shape, {}, readers_.back().get()};
  }
}

absl::StatusOr<Tensor> RandomSource::Get(absl::string_view name) const {
  const auto tensor = tensors_.find(name);
  if (tensor != tensors_.end()) return tensor->second;
  return absl::NotFoundError(absl::StrCat(path_, " has no tensor ", name, "."));
}

std::vector<std::string> RandomSource::Names() const {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : tensors_) names.push_back(name);
  return names;
}

}  // namespace lockstep
