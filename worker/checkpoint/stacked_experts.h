#pragma once

#include <absl/strings/string_view.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "worker/checkpoint/tensor_source.h"

namespace lockstep {

// Names of the matrices of a layer's experts that lie in one tensor:
// "model.layers.3.mlp.experts.", the expert's number, ".down_proj.weight".
struct ExpertNames {
  std::string before;
  std::string after;
};

// Tensors of files that hold a matrix of each expert of a layer, one on top of
// the other, by a name for each. They stay where they lie, and what is kept
// does not grow with the number of experts, which a few bytes of a file can
// make very large.
//
//   StackedExperts experts;
//   experts.Add({"e.", ".up"}, {.tensor = whole, .first_row = 3, .rows = 3});
//   experts.Find("e.5.up");
class StackedExperts {
 public:
  // Of each expert some rows, the same of all of them.
  struct Stack {
    Tensor tensor;  // [experts, rows of each, columns], mapped
    int64_t first_row = 0;
    int64_t rows = 0;
  };

  // The stack that had these names before, or null if it is this one.
  const Stack* Add(ExpertNames names, Stack stack);

  // By a name such as "model.layers.3.mlp.experts.5.down_proj.weight".
  std::optional<Tensor> Find(absl::string_view name) const;
  // The stack that it is a part of, or null.
  const Stack* StackOf(absl::string_view name) const;

  // Appends all names.
  void AddNames(std::vector<std::string>* names) const;

 private:
  // What is around the number.
  using Key = std::pair<std::string, std::string>;

  const Stack* Look(absl::string_view name, int64_t* expert) const;

  std::map<Key, Stack> stacks_;
};

}  // namespace lockstep
