#pragma once

#include <absl/types/span.h>

#include <cstdint>
#include <vector>

namespace lockstep {

// Which tokens of a step go to which expert. A token has a row for each of its
// experts; rows are sorted by expert, then by token, so that an expert's are
// multiplied together.
//
//   ExpertRouting routing(/*num_experts=*/128, /*experts_per_token=*/8, 512);
//   ops.ChooseExperts(…, routing.experts(), routing.weights());
//   routing.Group(tokens);
//   for (const ExpertRouting::Rows& rows : routing.groups()) …
//
// Allocates in the constructor alone.
class ExpertRouting {
 public:
  // Those of one expert: rows [begin, end), at least one.
  struct Rows {
    int expert;
    int begin;
    int end;
  };

  ExpertRouting(int num_experts, int experts_per_token, int max_tokens);

  // To be filled for each token: [tokens, experts_per_token].
  int32_t* experts() { return experts_.data(); }
  float* weights() { return weights_.data(); }
  const float* weights() const { return weights_.data(); }

  // Sorts the rows of the first `tokens` tokens.
  void Group(int tokens);

  // By number of the expert; those without tokens are left out.
  absl::Span<const Rows> groups() const { return groups_; }
  // [rows]: whose each is.
  const int32_t* token_of() const { return token_of_.data(); }
  // [tokens, experts_per_token]
  const int32_t* row_of() const { return row_of_.data(); }

 private:
  const int experts_per_token_;
  std::vector<int32_t> experts_;
  std::vector<float> weights_;
  std::vector<int32_t> token_of_, row_of_;
  std::vector<int> next_row_;  // [num_experts]
  std::vector<Rows> groups_;
};

}  // namespace lockstep
