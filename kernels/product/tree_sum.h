#pragma once

namespace lockstep::kernels {

// The one order in which partial sums are added, within a rank and over ranks:
// n terms split at the largest power of two below n, each side summed so, then
// left + right. For a power of two it is the balanced binary tree, and a group
// of ranks that each hold a sub-tree finishes the same tree.
//
//   n = 8: ((0+1)+(2+3)) + ((4+5)+(6+7))      n = 3: (0+1)+2
//
// REQUIRES: n >= 1. term(i) is called once for each i, in order.
template <typename Term>
float TreeSum(int n, const Term& term, int first = 0) {
  if (n == 1) return term(first);
  int left = 1;
  while (left * 2 < n) left *= 2;
  const float sum = TreeSum(left, term, first);
  return sum + TreeSum(n - left, term, first + left);
}

}  // namespace lockstep::kernels
