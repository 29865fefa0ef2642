#pragma once

#include <absl/strings/string_view.h>
#include <absl/types/span.h>

#include <cstdint>
#include <string>
#include <vector>

namespace lockstep::testing {

// Writes GGUF files, version 3, good ones and, for tests of readers, bad ones.
//
//   GgufWriter writer;
//   writer.AddString("general.architecture", "llama");
//   writer.AddTensor("output_norm.weight", {64}, /*type=*/0, bytes);
//   const std::string file = writer.Finish();
//
// Keys and tensors are written in the order they are added. Not thread-safe.
class GgufWriter {
 public:
  void AddUint(absl::string_view key, uint32_t value);
  void AddInt(absl::string_view key, int32_t value);
  void AddFloat(absl::string_view key, float value);
  void AddBool(absl::string_view key, bool value);
  void AddString(absl::string_view key, absl::string_view value);
  void AddStrings(absl::string_view key,
                  const std::vector<std::string>& values);
  void AddInts(absl::string_view key, absl::Span<const int32_t> values);
  void AddFloats(absl::string_view key, absl::Span<const float> values);

  // A value of ggml's number `type`, its bytes as given.
  void AddRaw(absl::string_view key, uint32_t type, absl::string_view bytes);

  // `shape` is outermost first, `type` ggml's number.
  void AddTensor(absl::string_view name, const std::vector<int64_t>& shape,
                 uint32_t type, absl::string_view bytes);

  // A tensor that is said to be at `offset` of the data, which is not extended.
  void AddTensorInfo(absl::string_view name, const std::vector<int64_t>& shape,
                     uint32_t type, uint64_t offset);

  // The file, aligned to 32 bytes.
  std::string Finish() const;

 private:
  struct TensorInfo {
    std::string name;
    std::vector<int64_t> shape;
    uint32_t type;
    uint64_t offset;
  };

  uint64_t num_entries_ = 0;
  std::string metadata_;
  std::vector<TensorInfo> tensors_;
  std::string data_;
};

}  // namespace lockstep::testing
