#pragma once

#include <cstddef>
#include <vector>

namespace lockstep::testing {

// Takes a test through every way in which its decisions may go.
//
//   EveryPath path;
//   do {
//     …path.Choose(2)…
//   } while (path.Next());
//
// What is run decides by nothing else.
class EveryPath {
 public:
  // One of `n` things, from 0. REQUIRES: n > 0.
  size_t Choose(size_t n);

  // The next path from its beginning. False: there is none.
  bool Next();

 private:
  struct Decision {
    size_t taken;
    size_t of;
  };

  std::vector<Decision> path_;
  size_t length_ = 0;  // that was walked
};

}  // namespace lockstep::testing
