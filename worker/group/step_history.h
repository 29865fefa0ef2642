#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/digest.h"

namespace lockstep {

// The last steps of a rank, for the log when the group fails: laid beside
// another rank's, they show the first step that differs.
//
//   history.Record({.step = step, .messages = 1, .tokens = 8, .digest =
//   digest}); history.WriteToLog();
//
// Record is the step thread's, takes no lock and allocates nothing. The rest is
// legal on any thread at any time, so that a rank whose step thread hangs is
// not silent about what it did.
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

  // The same, to the log, once.
  void WriteToLog();

 private:
  using Words = std::array<uint64_t, sizeof(Entry) / sizeof(uint64_t)>;

  const size_t capacity_;
  // An entry is words that may be read while they are written; those that were
  // are told by count_ and dropped.
  using Slot = std::array<std::atomic<uint64_t>, std::tuple_size_v<Words>>;
  const std::unique_ptr<Slot[]> ring_;
  std::atomic<uint64_t> begun_ = 0;  // entries whose writing has begun
  std::atomic<uint64_t> count_ = 0;  // and ended
  std::atomic<bool> is_written_ = false;
};

}  // namespace lockstep
