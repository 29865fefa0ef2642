#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/digest.h"

namespace lockstep {

// The last steps of a rank, for the log when the group fails: laid beside
// another rank's, they show the first step that differs.
//
// The step thread's, in which Record allocates nothing.
class StepHistory {
 public:
  struct Entry {
    uint64_t step = 0;
    uint32_t messages = 0;
    uint32_t tokens = 0;  // of the plan
    Digest digest = {};
  };

  explicit StepHistory(int capacity = 512);

  void Record(const Entry& entry);

  // Oldest first.
  std::vector<Entry> Entries() const;

  // One line an entry, oldest first.
  std::string ToString() const;

  // The same, to the log.
  void WriteToLog() const;

 private:
  const size_t capacity_;
  std::vector<Entry> ring_;
  size_t next_ = 0;  // where the next entry goes
};

}  // namespace lockstep
