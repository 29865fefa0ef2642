#pragma once

#include <absl/status/statusor.h>

#include <string>
#include <vector>

#include "worker/model_spec/model_config.h"
#include "worker/model_spec/sampling_defaults.h"

namespace lockstep {

// What a model's files say besides what it computes: what requests get that do
// not ask for something else, and where two files say different things.
struct ModelDefaults {
  SamplingDefaults sampling;
  // Tokens of a sequence where nobody says how many: as many as the model has
  // positions for, or the fewer that tokenizer_config.json wants.
  int context = 0;
  // A sentence for each difference: which files, what they say, what counts.
  std::vector<std::string> notes;
};

// Of a folder: from config.json, generation_config.json and
// tokenizer_config.json, of which each but the first may be absent; of a .gguf
// file: from its metadata. `config` is what was made of them, `has_head`:
// whether there is a tensor of a head of its own.
absl::StatusOr<ModelDefaults> ReadModelDefaults(const std::string& path,
                                                const ModelConfig& config,
                                                bool has_head);

}  // namespace lockstep
