#pragma once

#include <cstddef>
#include <functional>
#include <utility>
#include <vector>

namespace lockstep::testing {

// How a random case can be made smaller.
template <typename Case>
struct ShrinkSteps {
  // Of its list of things that may be left out, and how they are.
  std::function<size_t(const Case&)> size;
  std::function<void(Case&, size_t begin, size_t end)> erase;
  // Each makes one choice as plain as it can be.
  std::vector<std::function<void(Case&)>> simplifications;
};

// A case that still `fails`, from which nothing can be left out and no choice
// be made plain without that it passes.
//
//   const Schedule shrunk = Shrink<Schedule>(schedule, steps, fails);
//
// REQUIRES: fails(failing).
template <typename Case>
Case Shrink(Case failing, const ShrinkSteps<Case>& steps,
            const std::function<bool(const Case&)>& fails) {
  const auto try_change = [&](const std::function<void(Case&)>& change) {
    Case changed = failing;
    change(changed);
    const bool still_fails = fails(changed);
    if (still_fails) failing = std::move(changed);
    return still_fails;
  };
  // Many at once, then ever fewer; from the last on down, so that those not
  // tried yet keep their places. One that goes may let another go.
  const auto leave_out = [&](size_t count) {
    bool went = false;
    for (size_t end = steps.size(failing); end > 0;) {
      const size_t begin = end > count ? end - count : 0;
      went |=
          try_change([&](Case& changed) { steps.erase(changed, begin, end); });
      end = begin;
    }
    return went;
  };
  for (bool went = true; went;) {
    went = false;
    for (size_t count = steps.size(failing) / 2; count > 1; count /= 2) {
      went |= leave_out(count);
    }
    went |= leave_out(1);
  }
  for (const auto& simplification : steps.simplifications) {
    try_change(simplification);
  }
  return failing;
}

}  // namespace lockstep::testing
