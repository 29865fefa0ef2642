#pragma once

#include <absl/status/statusor.h>

#include <map>
#include <string>

#include "worker/checkpoint/tensor_source.h"

namespace lockstep {

// Digests of every byte of a model's tensors, in hex. A copy that was damaged
// anywhere has others, however it lies in files and whatever part of it a rank
// holds.
struct ContentDigest {
  std::string all;
  std::map<std::string, std::string> of_file;  // by path
};

// Reads all of `stored` once, in the order of its names, and gives its memory
// back as it goes: as long as the disk takes.
absl::StatusOr<ContentDigest> DigestContent(const TensorSource& stored);

}  // namespace lockstep
