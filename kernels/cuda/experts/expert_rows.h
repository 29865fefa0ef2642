#pragma once

#include <cstdint>

#include "kernels/cuda/cuda_types.h"
#include "kernels/cuda/product_args.h"

namespace lockstep::cuda {

// Where the experts of a step's tokens are computed, as worker/layers'
// ExpertRouting has it: a token has a row for each of those of its experts that
// are among [begin, end), a rank's; rows are sorted by expert, then by token.
struct ExpertRowsArgs {
  const int32_t* experts;  // [tokens, per_token], each once a token
  int tokens;
  int per_token;
  int begin;
  int end;
  int32_t* row_of;      // [tokens, per_token]; -1: of another rank
  int32_t* token_of;    // [tokens·per_token], of rows
  int32_t* first_rows;  // [end - begin + 1], of each expert; then how many
  // Runs of at most tile_rows rows of an expert, whose matrix is the number of
  // the expert from `begin` on. Those that are not needed are of no rows.
  RowTile* tiles;  // [num_tiles]
  int num_tiles;
  int tile_rows;
};

// How many tiles are enough, whatever the experts are.
constexpr int MostExpertTiles(int rows, int experts, int tile_rows) {
  const int tiles = rows / tile_rows + experts;
  return experts == 0 ? 0 : tiles < rows ? tiles : rows;
}

// REQUIRES: num_tiles = MostExpertTiles(tokens·per_token, end - begin,
// tile_rows).
CudaError SortExpertRows(const ExpertRowsArgs& args, Stream stream);

// y[t] = Σ weights[t, i]·outputs[row_of[t, i]] over the token's experts that
// have a row, in their order, and what all tokens go through last: shared[t],
// times the sigmoid of shared_gate[t].
struct ExpertSumArgs {
  const float* outputs;  // [rows, dim]
  const int32_t* row_of;
  const float* weights;
  int tokens;
  int per_token;
  int dim;
  const float* shared;       // [tokens, dim], or null
  const float* shared_gate;  // [tokens], or null: 1
  float* y;                  // [tokens, dim]
};

CudaError SumExperts(const ExpertSumArgs& args, Stream stream);

}  // namespace lockstep::cuda
