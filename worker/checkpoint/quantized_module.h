#pragma once

#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>

#include <cstdint>
#include <initializer_list>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "worker/checkpoint/tensor_source.h"
#include "worker/model_spec/quantization_config.h"

namespace lockstep {

// What a checkpoint has in place of one weight: "…q_proj.qweight" and others.
// A view; the tensors are mapped.
struct QuantizedModule {
  std::string name;  // "model.layers.0.self_attn.q_proj"
  std::string file;  // for messages
  std::map<std::string, Tensor, std::less<>> parts;  // by their last name

  const Tensor* Find(absl::string_view part) const;

  // The part, of one of the types and, unless it is empty, of the shape.
  // INVALID_ARGUMENT names file, tensor, expected and found.
  absl::StatusOr<const Tensor*> Get(
      absl::string_view part, std::initializer_list<kernels::DType> types,
      const std::vector<int64_t>& shape = {}) const;

  absl::Status Error(absl::string_view part, absl::string_view what) const;
};

// The weight of a module.
struct QuantizedWeight {
  kernels::DType type = kernels::DType::kF32;
  std::vector<int64_t> shape;  // [rows, cols]
  std::unique_ptr<RowReader> reader;
};

// Makes the weight out of the parts, whose shapes have to fit each other and a
// scheme of `config`. INVALID_ARGUMENT as above.
absl::StatusOr<QuantizedWeight> OpenModule(const QuantizedModule& module,
                                           const QuantizationConfig& config);

// Whether tensors of this last name are parts of modules; what is "weight" is
// one if it is no weight by itself.
bool IsPart(QuantizationConfig::Method method, absl::string_view part,
            kernels::DType type);

}  // namespace lockstep
