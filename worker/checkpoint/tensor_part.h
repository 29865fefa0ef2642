#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "worker/checkpoint/tensor_source.h"

namespace lockstep {

// All of a tensor, which is one row if it is a vector.
TensorPart WholeOf(const Tensor& tensor);

// The part's rows one after another, in the tensor's type: copied, or made by
// its reader. As RowReader::Read.
void ReadPart(const Tensor& tensor, const TensorPart& part, uint8_t* out);

// The same in fp32, [part.rows, part.cols].
void DecodePart(const Tensor& tensor, const TensorPart& part, float* out);

// What the tensor is stored as: the name of its type or of its format.
std::string FormatName(const Tensor& tensor);

// "[2, 64]", for messages.
std::string ShapeText(const std::vector<int64_t>& shape);

}  // namespace lockstep
