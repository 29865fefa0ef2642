#include "worker/checkpoint/quantized_module.h"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "common/status_macros.h"
#include "worker/checkpoint/float8_rows.h"
#include "worker/checkpoint/integer_rows.h"
#include "worker/checkpoint/tensor_part.h"

namespace lockstep {
namespace {

using kernels::DType;
using Method = QuantizationConfig::Method;
using Shape = std::vector<int64_t>;

constexpr std::initializer_list<DType> kScaleTypes = {DType::kF32, DType::kF16,
                                                      DType::kBF16};
constexpr int kWordBits = 32;

// AutoAWQ's order of eight neighbours in a word.
constexpr std::array<uint8_t, 8> kAwqOrder = {0, 4, 1, 5, 2, 6, 3, 7};

int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

int64_t GroupCols(const WeightScheme& scheme, int64_t cols) {
  return scheme.group_cols == 0 ? cols : scheme.group_cols;
}

// Integers in 32-bit words.
PackedIntegers InWords(const Tensor& tensor, int bits, bool lanes_are_columns) {
  return {.words = tensor.bytes.data(),
          .bits = bits,
          .lanes_log2 = bits == 4 ? 3 : 2,
          .lanes_are_columns = lanes_are_columns,
          .row_stride = tensor.shape[1],
          .col_stride = 1};
}

// What is stored column by column: [cols, rows].
PackedIntegers Transposed(PackedIntegers integers) {
  std::swap(integers.row_stride, integers.col_stride);
  return integers;
}

// Bytes of one integer each.
PackedIntegers InBytes(const Tensor& tensor) {
  return {.words = tensor.bytes.data(),
          .bits = 8,
          .lanes_log2 = 0,
          .row_stride = tensor.shape[1],
          .col_stride = 1,
          .is_signed = true};
}

absl::StatusOr<QuantizedWeight> Finish(IntegerMatrix matrix) {
  QuantizedWeight weight;
  weight.shape = {matrix.rows, matrix.cols};
  auto rows = std::make_unique<IntegerRows>(std::move(matrix));
  weight.type = rows->type();
  weight.reader = std::move(rows);
  return weight;
}

// The group of each column, where it is not that of its place. `part` is the
// list of them.
absl::Status ReadGroups(const QuantizedModule& module, absl::string_view part,
                        int64_t groups, IntegerMatrix* matrix) {
  if (module.Find(part) == nullptr) return absl::OkStatus();
  LOCKSTEP_ASSIGN_OR_RETURN(const Tensor* tensor,
                            module.Get(part, {DType::kI32}, {matrix->cols}));
  std::vector<int32_t> group_of(matrix->cols);
  std::memcpy(group_of.data(), tensor->bytes.data(), tensor->bytes.size());
  bool in_order = true;
  for (int64_t col = 0; col < matrix->cols; ++col) {
    if (group_of[col] < 0 || group_of[col] >= groups) {
      return module.Error(
          part, absl::StrCat("column ", col, " is of group ", group_of[col],
                             ", expected 0 to ", groups - 1));
    }
    in_order = in_order && group_of[col] == col / matrix->group_cols;
  }
  if (!in_order) matrix->group_of = std::move(group_of);
  return absl::OkStatus();
}

// GPTQ, as AutoGPTQ writes it, and AWQ, as AutoAWQ's gemm does: [cols, rows],
// words of neighbours in a column or in a row.
absl::StatusOr<QuantizedWeight> OpenTransposed(
    const QuantizedModule& module, const QuantizationConfig& config) {
  const bool awq = config.method == Method::kAwq;
  const WeightScheme& scheme = config.schemes[0];
  const int lanes = kWordBits / scheme.bits;
  LOCKSTEP_ASSIGN_OR_RETURN(const Tensor* weights,
                            module.Get("qweight", {DType::kI32}));
  if (weights->shape.size() != 2) {
    return module.Error("qweight", "it is no matrix");
  }
  IntegerMatrix matrix;
  matrix.cols = weights->shape[0] * (awq ? 1 : lanes);
  matrix.rows = weights->shape[1] * (awq ? lanes : 1);
  matrix.format = absl::StrCat(awq ? "AWQ" : "GPTQ", "-INT", scheme.bits);
  matrix.group_cols = GroupCols(scheme, matrix.cols);
  const int64_t groups = CeilDiv(matrix.cols, matrix.group_cols);
  matrix.weights = Transposed(InWords(*weights, scheme.bits, !awq));
  LOCKSTEP_ASSIGN_OR_RETURN(const Tensor* zeros,
                            module.Get("qzeros", {DType::kI32},
                                       {groups, CeilDiv(matrix.rows, lanes)}));
  matrix.zeros = Transposed(InWords(*zeros, scheme.bits, false));
  if (awq) matrix.weights.order = matrix.zeros->order = kAwqOrder;
  matrix.zero_offset = config.zero_offset;
  LOCKSTEP_ASSIGN_OR_RETURN(
      const Tensor* scales,
      module.Get("scales", kScaleTypes, {groups, matrix.rows}));
  matrix.scales = {.type = scales->type,
                   .values = scales->bytes.data(),
                   .row_stride = 1,
                   .group_stride = matrix.rows};
  if (!awq) {
    LOCKSTEP_RETURN_IF_ERROR(ReadGroups(module, "g_idx", groups, &matrix));
  }
  return Finish(std::move(matrix));
}

// Scales of [1], [rows], [rows, 1] or [rows, groups], or of blocks, where
// `rows_each` is not 0.
absl::StatusOr<ScaleGrid> ReadScales(const QuantizedModule& module,
                                     absl::string_view part, int64_t rows,
                                     int64_t groups, int64_t rows_each) {
  LOCKSTEP_ASSIGN_OR_RETURN(const Tensor* scales,
                            module.Get(part, kScaleTypes));
  ScaleGrid grid = {.type = scales->type, .values = scales->bytes.data()};
  const Shape& shape = scales->shape;
  if (rows_each > 0) {
    LOCKSTEP_RETURN_IF_ERROR(
        module.Get(part, kScaleTypes, {CeilDiv(rows, rows_each), groups})
            .status());
    grid.rows_each = rows_each;
  } else if (groups == 1 && (shape.empty() || shape == Shape{1})) {
    return grid;
  } else if (groups != 1 || shape != Shape{rows}) {
    LOCKSTEP_RETURN_IF_ERROR(
        module.Get(part, kScaleTypes, {rows, groups}).status());
  }
  grid.row_stride = groups;
  grid.group_stride = 1;
  return grid;
}

absl::StatusOr<QuantizedWeight> OpenFloat8(const QuantizedModule& module,
                                           absl::string_view scale_part,
                                           const WeightScheme& scheme) {
  LOCKSTEP_ASSIGN_OR_RETURN(const Tensor* weights,
                            module.Get("weight", {DType::kF8_E4M3}));
  if (weights->shape.size() != 2) {
    return module.Error("weight", "it is no matrix");
  }
  const int64_t rows = weights->shape[0], cols = weights->shape[1];
  const int64_t group_cols = GroupCols(scheme, cols);
  LOCKSTEP_ASSIGN_OR_RETURN(
      const ScaleGrid scales,
      ReadScales(module, scale_part, rows, CeilDiv(cols, group_cols),
                 scheme.group_rows));
  QuantizedWeight weight;
  weight.type = DType::kF32;
  weight.shape = weights->shape;
  weight.reader = std::make_unique<Float8Rows>(weights->bytes.data(), cols,
                                               scales, group_cols);
  return weight;
}

// Zero points of compressed-tensors: packed along the rows as weights are along
// the columns, or a signed byte each.
absl::Status ReadZeros(const QuantizedModule& module, int64_t groups,
                       IntegerMatrix* matrix) {
  constexpr char kPart[] = "weight_zero_point";
  LOCKSTEP_ASSIGN_OR_RETURN(const Tensor* zeros,
                            module.Get(kPart, {DType::kI32, DType::kI8}));
  const int bits = matrix->weights.bits;
  if (zeros->type == DType::kI32) {
    const int64_t words = CeilDiv(matrix->rows, kWordBits / bits);
    LOCKSTEP_RETURN_IF_ERROR(
        module.Get(kPart, {DType::kI32}, {words, groups}).status());
    matrix->zeros = InWords(*zeros, bits, /*lanes_are_columns=*/false);
    return absl::OkStatus();
  }
  LOCKSTEP_RETURN_IF_ERROR(
      module.Get(kPart, {DType::kI8}, {matrix->rows, groups}).status());
  matrix->zeros = InBytes(*zeros);
  // From the middle of bytes to that of the weights.
  matrix->zero_offset = (1 << (bits - 1)) - (1 << 7);
  return absl::OkStatus();
}

// The shape that compressed-tensors says of packed integers: their words may be
// filled up.
absl::StatusOr<Shape> ReadShape(const QuantizedModule& module) {
  constexpr char kPart[] = "weight_shape";
  LOCKSTEP_ASSIGN_OR_RETURN(const Tensor* tensor,
                            module.Get(kPart, {DType::kI64, DType::kI32}, {2}));
  float sizes[2];  // exact below 2^24
  DecodePart(*tensor, WholeOf(*tensor), sizes);
  if (!(sizes[0] >= 1 && sizes[0] < 0x1p24f && sizes[1] >= 1 &&
        sizes[1] < 0x1p24f)) {
    return module.Error(kPart, absl::StrCat("it is [", sizes[0], ", ", sizes[1],
                                            "], expected sizes below 2^24"));
  }
  return Shape{static_cast<int64_t>(sizes[0]), static_cast<int64_t>(sizes[1])};
}

absl::StatusOr<QuantizedWeight> OpenIntegers(const QuantizedModule& module,
                                             const WeightScheme& scheme) {
  IntegerMatrix matrix;
  if (module.Find("weight_packed") != nullptr) {
    LOCKSTEP_ASSIGN_OR_RETURN(const Shape shape, ReadShape(module));
    LOCKSTEP_ASSIGN_OR_RETURN(
        const Tensor* packed,
        module.Get("weight_packed", {DType::kI32},
                   {shape[0], CeilDiv(shape[1], kWordBits / scheme.bits)}));
    matrix.rows = shape[0];
    matrix.cols = shape[1];
    matrix.weights = InWords(*packed, scheme.bits, /*lanes_are_columns=*/true);
  } else {
    LOCKSTEP_ASSIGN_OR_RETURN(const Tensor* weights,
                              module.Get("weight", {DType::kI8}));
    if (weights->shape.size() != 2) {
      return module.Error("weight", "it is no matrix");
    }
    matrix.rows = weights->shape[0];
    matrix.cols = weights->shape[1];
    matrix.weights = InBytes(*weights);
  }
  matrix.format = absl::StrCat("INT", scheme.bits);
  matrix.group_cols = GroupCols(scheme, matrix.cols);
  const int64_t groups = CeilDiv(matrix.cols, matrix.group_cols);
  LOCKSTEP_ASSIGN_OR_RETURN(
      matrix.scales, ReadScales(module, "weight_scale", matrix.rows, groups,
                                scheme.group_rows));
  if (scheme.has_zeros || module.Find("weight_zero_point") != nullptr) {
    LOCKSTEP_RETURN_IF_ERROR(ReadZeros(module, groups, &matrix));
  }
  LOCKSTEP_RETURN_IF_ERROR(ReadGroups(module, "weight_g_idx", groups, &matrix));
  return Finish(std::move(matrix));
}

// The first scheme that fits; the refusal is that of the last one.
absl::StatusOr<QuantizedWeight> OpenAsAScheme(
    const QuantizedModule& module, const QuantizationConfig& config) {
  const Tensor* weight = module.Find("weight");
  const bool is_float = weight != nullptr && weight->type == DType::kF8_E4M3;
  absl::Status refusal =
      module.Error(weight == nullptr ? "weight_packed" : "weight",
                   "no group of the quantization_config is of its type");
  for (const WeightScheme& scheme : config.schemes) {
    if (scheme.is_float != is_float) continue;
    auto opened = is_float ? OpenFloat8(module, "weight_scale", scheme)
                           : OpenIntegers(module, scheme);
    if (opened.ok()) return opened;
    refusal = opened.status();
  }
  return refusal;
}

}  // namespace

const Tensor* QuantizedModule::Find(absl::string_view part) const {
  const auto found = parts.find(part);
  return found == parts.end() ? nullptr : &found->second;
}

absl::StatusOr<const Tensor*> QuantizedModule::Get(
    absl::string_view part, std::initializer_list<DType> types,
    const std::vector<int64_t>& shape) const {
  const Tensor* tensor = Find(part);
  if (tensor == nullptr) return Error(part, "it is missing");
  if (std::find(types.begin(), types.end(), tensor->type) == types.end()) {
    return Error(
        part, absl::StrCat("it is of type ", kernels::DTypeName(tensor->type),
                           ", expected ", kernels::DTypeName(*types.begin())));
  }
  if (shape.empty() || tensor->shape == shape) return tensor;
  return Error(part, absl::StrCat("it has the shape ", ShapeText(tensor->shape),
                                  ", expected ", ShapeText(shape)));
}

absl::Status QuantizedModule::Error(absl::string_view part,
                                    absl::string_view what) const {
  return absl::InvalidArgumentError(
      absl::StrCat(file, ": tensor ", name, ".", part, ": ", what, "."));
}

absl::StatusOr<QuantizedWeight> OpenModule(const QuantizedModule& module,
                                           const QuantizationConfig& config) {
  switch (config.method) {
    case Method::kGptq:
    case Method::kAwq:
      return OpenTransposed(module, config);
    case Method::kFp8:
      // Either name, whatever the scales are of.
      return OpenFloat8(module,
                        module.Find("weight_scale_inv") != nullptr
                            ? "weight_scale_inv"
                            : "weight_scale",
                        config.schemes[0]);
    case Method::kCompressedTensors:
      return OpenAsAScheme(module, config);
  }
  __builtin_unreachable();
}

bool IsPart(Method method, absl::string_view part, DType type) {
  if (part == "weight") return !kernels::HoldsWeights(type);
  const auto is_one_of =
      [part](std::initializer_list<absl::string_view> names) {
        return std::find(names.begin(), names.end(), part) != names.end();
      };
  switch (method) {
    case Method::kFp8:
      return is_one_of({"weight_scale_inv", "weight_scale", "input_scale"});
    case Method::kGptq:
    case Method::kAwq:
      return is_one_of({"qweight", "qzeros", "scales", "g_idx"});
    case Method::kCompressedTensors:
      return is_one_of({"weight_packed", "weight_scale", "weight_zero_point",
                        "weight_shape", "weight_g_idx", "input_scale",
                        "input_zero_point"});
  }
  __builtin_unreachable();
}

}  // namespace lockstep
