#include "worker/checkpoint/stacked_experts.h"

#include <absl/strings/ascii.h>
#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>

#include <cstddef>

#include "kernels/weights/dtype.h"

namespace lockstep {
namespace {

constexpr absl::string_view kExperts = ".experts.";

// A name that is split around the number of an expert.
struct SplitName {
  std::string before;
  int64_t expert = 0;
  std::string after;
};

std::optional<SplitName> Split(absl::string_view name) {
  const size_t at = name.find(kExperts);
  if (at == absl::string_view::npos) return std::nullopt;
  const size_t begin = at + kExperts.size();
  size_t end = begin;
  while (end < name.size() && absl::ascii_isdigit(name[end])) ++end;
  const absl::string_view digits = name.substr(begin, end - begin);
  SplitName split;
  if (!absl::SimpleAtoi(digits, &split.expert)) return std::nullopt;
  if (digits.size() > 1 && digits[0] == '0') return std::nullopt;
  split.before = std::string(name.substr(0, begin));
  split.after = std::string(name.substr(end));
  return split;
}

}  // namespace

const StackedExperts::Stack* StackedExperts::Add(ExpertNames names,
                                                 Stack stack) {
  const auto [at, is_new] = stacks_.try_emplace(
      Key(std::move(names.before), std::move(names.after)), std::move(stack));
  return is_new ? nullptr : &at->second;
}

const StackedExperts::Stack* StackedExperts::Look(absl::string_view name,
                                                  int64_t* expert) const {
  const std::optional<SplitName> split = Split(name);
  if (!split.has_value()) return nullptr;
  const auto stack = stacks_.find(Key(split->before, split->after));
  if (stack == stacks_.end()) return nullptr;
  *expert = split->expert;
  const bool is_there = split->expert < stack->second.tensor.shape[0];
  return is_there ? &stack->second : nullptr;
}

const StackedExperts::Stack* StackedExperts::StackOf(
    absl::string_view name) const {
  int64_t expert;
  return Look(name, &expert);
}

std::optional<Tensor> StackedExperts::Find(absl::string_view name) const {
  int64_t expert;
  const Stack* stack = Look(name, &expert);
  if (stack == nullptr) return std::nullopt;
  const Tensor& whole = stack->tensor;
  const int64_t cols = whole.shape[2];
  const size_t row_bytes = kernels::RowBytes(whole.type, cols);
  const int64_t row = expert * whole.shape[1] + stack->first_row;
  return Tensor{std::string(name),
                whole.type,
                {stack->rows, cols},
                whole.bytes.subspan(row * row_bytes, stack->rows * row_bytes)};
}

void StackedExperts::AddNames(std::vector<std::string>* names) const {
  for (const auto& [key, stack] : stacks_) {
    for (int64_t i = 0; i < stack.tensor.shape[0]; ++i) {
      names->push_back(absl::StrCat(key.first, i, key.second));
    }
  }
}

}  // namespace lockstep
