#pragma once

namespace lockstep::kernels {

// What a query and a key give, and which keys a query sees.
struct AttentionRule {
  float scale = 1;  // of the query
  // A score becomes soft_cap·tanh(score / soft_cap) unless this is 0.
  float soft_cap = 0;
  // Positions seen, the token's own the last of them; 0: all up to its own.
  int window = 0;
};

}  // namespace lockstep::kernels
