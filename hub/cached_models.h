#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace lockstep {

// A model that lies on this machine.
struct LocalModel {
  std::string name;  // as --model takes it
  std::string path;  // of a folder or a GGUF file
  int64_t bytes = 0;
};

// Those whose weights are in a hub's cache (see HubCache), in the order of
// their names: one for each folder of a commit, one for each of its GGUF files.
// A commit that no branch or tag is any more has its own name.
std::vector<LocalModel> CachedModels(const std::string& cache);

// Those in a folder: GGUF files, and folders with config.json.
std::vector<LocalModel> ModelsIn(const std::string& folder);

}  // namespace lockstep
