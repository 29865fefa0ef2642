#include "kernels/product/packed_block.h"

namespace lockstep::kernels {

PackedBlock UnpackPackedBlock(PackedType type, const uint8_t* slice, int row,
                              int block) {
  PackedBlock out = {};
  const bool halves = type == PackedType::kQ2_K || type == PackedType::kQ6_K;
  out.fold_cols = halves ? kQuantBlock / 2 : kQuantBlock;
  out.has_min = type == PackedType::kQ5_1 || type == PackedType::kQ2_K ||
                type == PackedType::kQ4_1 || type == PackedType::kQ4_K ||
                type == PackedType::kQ5_K || type == PackedType::kQ4_Z;
  for (int i = 0; i < kQuantBlock; ++i) {
    const PackedWeight w =
        UnpackWeight(type, slice, row, block * kQuantBlock + i);
    out.quant[i] = w.quant;
    out.scale[i / out.fold_cols] = w.scale;
    out.min[i / out.fold_cols] = w.min;
  }
  return out;
}

}  // namespace lockstep::kernels
