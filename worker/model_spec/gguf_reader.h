#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/string_view.h>

#include <cstdint>
#include <string>

#include "common/gguf_file.h"
#include "worker/model_spec/architecture.h"

namespace lockstep {

// The architecture of a file, experts or not. UNIMPLEMENTED names those that
// are supported.
absl::StatusOr<const Architecture*> GgufArchitecture(const GgufFile& file);

// The metadata of the architecture that a file names: keys without its prefix
// ("llama."), each with limits.
//
//   const GgufReader reader(file);
//   LOCKSTEP_ASSIGN_OR_RETURN(int layers,
//                             reader.Int("block_count", 1, kMaxLayers));
//
// INVALID_ARGUMENT names file, key, what is expected and what was found.
// `file` must outlive this.
class GgufReader {
 public:
  // REQUIRES: the file has the name, as after GgufArchitecture; else there is
  // no key.
  explicit GgufReader(const GgufFile& file);

  const GgufFile& file() const { return file_; }
  std::string Key(absl::string_view name) const;
  bool Has(absl::string_view name) const;

  absl::StatusOr<int> Int(absl::string_view name, uint64_t least,
                          uint64_t most) const;
  absl::StatusOr<int> IntOr(absl::string_view name, uint64_t least,
                            uint64_t most, int otherwise) const;
  absl::StatusOr<float> Float(absl::string_view name, double above,
                              double most) const;
  absl::StatusOr<float> FloatOr(absl::string_view name, double above,
                                double most, float otherwise) const;

  absl::Status Unexpected(absl::string_view name, const absl::AlphaNum& value,
                          absl::string_view expected) const;
  // UNIMPLEMENTED naming file and key.
  absl::Status Unsupported(absl::string_view name,
                           absl::string_view supported) const;

 private:
  const GgufFile& file_;
  const std::string prefix_;
};

}  // namespace lockstep
