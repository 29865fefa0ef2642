#include <absl/strings/string_view.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/strict_json.h"
#include "worker/checkpoint/quantized_checkpoint.h"
#include "worker/checkpoint/safetensors_file.h"
#include "worker/checkpoint/tensor_part.h"

namespace lockstep {
namespace {

class OneFile : public TensorSource {
 public:
  explicit OneFile(std::unique_ptr<SafetensorsFile> file)
      : file_(std::move(file)) {}

  absl::StatusOr<Tensor> Get(absl::string_view name) const override {
    const auto found = file_->tensors().find(name);
    if (found == file_->tensors().end()) return absl::NotFoundError(name);
    return found->second;
  }
  std::vector<std::string> Names() const override {
    std::vector<std::string> names;
    for (const auto& [name, tensor] : file_->tensors()) names.push_back(name);
    return names;
  }
  const std::string& path() const override { return file_->path(); }

 private:
  const std::unique_ptr<SafetensorsFile> file_;
};

}  // namespace
}  // namespace lockstep

// A line of config.json, then a safetensors file. Whatever the bytes: an error,
// or weights all of whose rows can be read.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lockstep;
  const void* end = std::memchr(data, '\n', size);
  if (end == nullptr) return 0;
  const size_t line = static_cast<const uint8_t*>(end) - data;
  const auto json = ParseStrictJson(
      absl::string_view(reinterpret_cast<const char*>(data), line), "fuzz");
  if (!json.ok()) return 0;
  const auto config = ReadQuantizationConfig(*json, "fuzz");
  if (!config.ok() || !config->has_value()) return 0;
  auto file =
      SafetensorsFile::Parse({data + line + 1, size - line - 1}, "fuzz");
  if (!file.ok()) return 0;
  const auto checkpoint = QuantizedCheckpoint::Create(
      std::make_unique<OneFile>(*std::move(file)), **config);
  if (!checkpoint.ok()) return 0;
  for (const std::string& name : (*checkpoint)->Names()) {
    const auto tensor = (*checkpoint)->Get(name);
    if (tensor->reader == nullptr) continue;
    TensorPart part = WholeOf(*tensor);
    std::vector<float> row(part.cols);
    for (part.rows = 1; part.row_begin < tensor->shape[0]; ++part.row_begin) {
      DecodePart(*tensor, part, row.data());
    }
  }
  return 0;
}
