#include "tests/testing/async_device/every_path.h"

#include <glog/logging.h>

namespace lockstep::testing {

size_t EveryPath::Choose(size_t n) {
  if (length_ == path_.size()) path_.push_back({.taken = 0, .of = n});
  const Decision& decision = path_[length_++];
  CHECK_EQ(decision.of, n) << "something else decides, too";
  return decision.taken;
}

bool EveryPath::Next() {
  length_ = 0;
  while (!path_.empty() && path_.back().taken + 1 == path_.back().of) {
    path_.pop_back();
  }
  if (path_.empty()) return false;
  ++path_.back().taken;
  return true;
}

}  // namespace lockstep::testing
