#pragma once

#include <vector>

namespace lockstep::bench {

// What several measurements of one thing came to.
struct Spread {
  double median = 0;
  double least = 0;
  double most = 0;
};

// REQUIRES: there are some.
Spread SpreadOf(std::vector<double> values);

// The value that `share` (0 to 1) of them do not exceed; 0 of none.
double Percentile(std::vector<double> values, double share);

}  // namespace lockstep::bench
