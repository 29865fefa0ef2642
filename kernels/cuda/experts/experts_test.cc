// Mixtures of experts: the choice of the host from the same logits, rows sorted
// as by its routing, and sums in the tokens' order.
#include <absl/types/span.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <random>
#include <vector>

#include "kernels/cuda/experts/expert_choice.h"
#include "kernels/cuda/experts/expert_rows.h"
#include "kernels/cuda/kernel_run.h"
#include "kernels/cuda/product_args.h"
#include "kernels/expert_cases.h"
#include "kernels/expert_choice.h"
#include "kernels/ops_conformance.h"

namespace lockstep::cuda {
namespace {

using kernels::ExpertCase;

class ExpertsTest : public testing::Test {
 protected:
  ExpertsTest() : random_(kernels::kSeed) {
    RecordProperty("seed", kernels::kSeed);
  }

  // Different ones for each of the tokens: [tokens, per_token].
  std::vector<int32_t> Chosen(int tokens, int per_token, int num_experts) {
    std::vector<int32_t> all(num_experts), chosen;
    std::iota(all.begin(), all.end(), 0);
    for (int token = 0; token < tokens; ++token) {
      std::shuffle(all.begin(), all.end(), random_);
      chosen.insert(chosen.end(), all.begin(), all.begin() + per_token);
    }
    return chosen;
  }

  std::mt19937 random_;
};

// The choices of a case's tokens, each with its own logits: experts as they
// are, then the bits of the weights.
std::vector<int32_t> ChoicesOf(const ExpertCase& c, int tokens,
                               const std::vector<float>& logits) {
  const int count = tokens * c.rule.count;
  return SameInEveryOrder(std::vector<int32_t>(2 * count), [&](int32_t* out) {
    return ChooseExperts({.logits = logits.data(),
                          .tokens = tokens,
                          .num_experts = static_cast<int>(c.logits.size()),
                          .rule = c.rule,
                          .bias = c.bias.empty() ? nullptr : c.bias.data(),
                          .experts = out,
                          .weights = reinterpret_cast<float*>(out + count)},
                         nullptr);
  });
}

TEST_F(ExpertsTest, ChoosesWhatTheHostChooses) {
  for (const ExpertCase& c : kernels::AwkwardExpertCases(random_)) {
    SCOPED_TRACE(c.name);
    const int tokens = 5, count = c.rule.count;
    std::vector<float> logits;
    for (int token = 0; token < tokens; ++token) {
      std::vector<float> of_token = c.logits;
      std::shuffle(of_token.begin(), of_token.end(), random_);
      logits.insert(logits.end(), of_token.begin(), of_token.end());
    }
    const std::vector<int32_t> found = ChoicesOf(c, tokens, logits);
    const auto* const weights =
        reinterpret_cast<const float*>(&found[tokens * count]);
    for (int token = 0; token < tokens; ++token) {
      std::vector<int32_t> experts(count);
      std::vector<float> expected(count);
      kernels::ChooseExperts(
          absl::MakeSpan(&logits[token * c.logits.size()], c.logits.size()),
          c.rule, c.bias.empty() ? nullptr : c.bias.data(), experts.data(),
          expected.data());
      for (int i = 0; i < count; ++i) {
        const int at = token * count + i;
        EXPECT_EQ(found[at], experts[i]) << "token " << token << ", " << i;
        if (c.rule.sigmoid || c.rule.renormalize) {
          EXPECT_TRUE(weights[at] == expected[i] ||
                      (std::isnan(weights[at]) && std::isnan(expected[i])))
              << weights[at] << " and " << expected[i];
        } else if (!std::isnan(expected[i])) {
          EXPECT_NEAR(weights[at], expected[i], 1e-5 * expected[i]);
        }
      }
    }
  }
}

struct RowsCase {
  int tokens, per_token, num_experts;
  int begin, end;  // of the rank's
};

// Around a block's threads and a tile's rows; ranks with the first, the last,
// some, one or none of the experts.
constexpr RowsCase kRowsCases[] = {
    {1, 1, 1, 0, 1},   {1, 2, 4, 0, 4},     {1, 8, 128, 0, 128},
    {1, 2, 4, 3, 4},   {7, 3, 6, 2, 4},     {5, 2, 6, 6, 6},
    {64, 2, 2, 0, 2},  {100, 4, 60, 0, 60}, {33, 8, 128, 64, 128},
    {300, 1, 3, 1, 2}, {43, 3, 200, 0, 200}};

struct SortedRows {
  std::vector<int32_t> row_of, token_of, first_rows, tiles;
};

// In one array, for kernels that run in every order.
std::vector<int32_t> Sorted(const RowsCase& c,
                            const std::vector<int32_t>& experts, int tile_rows,
                            SortedRows* rows) {
  const int all = c.tokens * c.per_token, own = c.end - c.begin;
  const int tiles = MostExpertTiles(all, own, tile_rows);
  const auto run = [&](int32_t* out) {
    return SortExpertRows(
        {.experts = experts.data(),
         .tokens = c.tokens,
         .per_token = c.per_token,
         .begin = c.begin,
         .end = c.end,
         .row_of = out,
         .token_of = out + all,
         .first_rows = out + 2 * all,
         .tiles = reinterpret_cast<RowTile*>(out + 2 * all + own + 1),
         .num_tiles = tiles,
         .tile_rows = tile_rows},
        nullptr);
  };
  const std::vector<int32_t> out = SameInEveryOrder(
      std::vector<int32_t>(2 * all + own + 1 + 3 * tiles, -7), run);
  const auto part = [&](int begin, int count) {
    return std::vector<int32_t>(out.begin() + begin,
                                out.begin() + begin + count);
  };
  *rows = {part(0, all), part(all, all), part(2 * all, own + 1),
           part(2 * all + own + 1, 3 * tiles)};
  return out;
}

TEST_F(ExpertsTest, SortsRowsByExpertThenByToken) {
  for (const RowsCase& c : kRowsCases) {
    const std::vector<int32_t> experts =
        Chosen(c.tokens, c.per_token, c.num_experts);
    for (int tile_rows : {kFewTileRows, kMostTileRows}) {
      SCOPED_TRACE(testing::Message()
                   << c.tokens << " tokens, " << c.begin << " to " << c.end
                   << " of " << c.num_experts << ", " << tile_rows);
      SortedRows rows;
      Sorted(c, experts, tile_rows, &rows);
      std::vector<int32_t> row_of(experts.size(), -1), first_rows, tiles;
      int row = 0;
      for (int expert = c.begin; expert < c.end; ++expert) {
        const int first = row;
        first_rows.push_back(row);
        for (size_t i = 0; i < experts.size(); ++i) {
          if (experts[i] != expert) continue;
          EXPECT_EQ(rows.token_of[row], static_cast<int>(i) / c.per_token);
          row_of[i] = row++;
        }
        for (int begin = first; begin < row; begin += tile_rows) {
          tiles.insert(tiles.end(), {expert - c.begin, begin,
                                     std::min(tile_rows, row - begin)});
        }
      }
      first_rows.push_back(row);
      EXPECT_EQ(rows.row_of, row_of);
      EXPECT_EQ(rows.first_rows, first_rows);
      ASSERT_LE(tiles.size(), rows.tiles.size());
      tiles.resize(rows.tiles.size());
      EXPECT_EQ(rows.tiles, tiles);
    }
  }
}

// Of rows that are numbered alone: what wrong numbers list would lie anywhere.
TEST_F(ExpertsTest, NumberingRowsNeedsItsBarrier) {
  const RowsCase c = {60, 4, 8, 0, 8};
  const std::vector<int32_t> experts =
      Chosen(c.tokens, c.per_token, c.num_experts);
  std::vector<int32_t> token_of(240), first_rows(9);
  ExpectNeedsEachBarrier(1, std::vector<int32_t>(240), [&](int32_t* row_of) {
    return SortExpertRows({experts.data(), 60, 4, 0, 8, row_of, token_of.data(),
                           first_rows.data(), nullptr, 0, kFewTileRows},
                          nullptr);
  });
}

TEST_F(ExpertsTest, SumsInTheOrderOfTheChoice) {
  for (const RowsCase& c : kRowsCases) {
    for (const bool has_shared : {false, true}) {
      for (const bool has_gate : {false, true}) {
        if (has_gate && !has_shared) continue;
        const int dim = 131, all = c.tokens * c.per_token;
        SortedRows rows;
        Sorted(c, Chosen(c.tokens, c.per_token, c.num_experts), kFewTileRows,
               &rows);
        const auto outputs = RandomValues<float>(all * dim, random_);
        const auto weights = RandomValues<float>(all, random_);
        const auto shared = RandomValues<float>(c.tokens * dim, random_);
        const auto gate = RandomValues<float>(c.tokens, random_, 3);
        const auto y = SameInEveryOrder(
            std::vector<float>(c.tokens * dim), [&](float* out) {
              return SumExperts(
                  {.outputs = outputs.data(),
                   .row_of = rows.row_of.data(),
                   .weights = weights.data(),
                   .tokens = c.tokens,
                   .per_token = c.per_token,
                   .dim = dim,
                   .shared = has_shared ? shared.data() : nullptr,
                   .shared_gate = has_gate ? gate.data() : nullptr,
                   .y = out},
                  nullptr);
            });
        for (int at = 0; at < c.tokens * dim; ++at) {
          const int token = at / dim, d = at % dim;
          double sum = 0, absolute = 0;
          const auto add = [&](double weight, double value) {
            sum += weight * value;
            absolute += std::abs(weight * value);
          };
          for (int i = token * c.per_token; i < (token + 1) * c.per_token;
               ++i) {
            const int row = rows.row_of[i];
            if (row >= 0) add(weights[i], outputs[row * dim + d]);
          }
          if (has_shared) {
            add(has_gate ? 1 / (1 + std::exp(-double{gate[token]})) : 1,
                shared[at]);
          }
          ASSERT_NEAR(y[at], sum, absolute * (c.per_token + 4) * 0x1p-24);
        }
      }
    }
  }
}

}  // namespace
}  // namespace lockstep::cuda
