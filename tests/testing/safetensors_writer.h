#pragma once

#include <absl/strings/string_view.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace lockstep::testing {

// Writes safetensors files: 64 bits of header size, the header in JSON, data.
//
//   SafetensorsWriter writer;
//   writer.AddTensor("model.norm.weight", "F32", {64}, bytes);
//   const std::string file = writer.Finish();
//
// For bad files, change header() or give Finish another header. Not
// thread-safe.
class SafetensorsWriter {
 public:
  void AddTensor(absl::string_view name, absl::string_view dtype,
                 const std::vector<int64_t>& shape, absl::string_view bytes);

  nlohmann::json& header() { return header_; }

  std::string Finish() const;

  // The file with `header` as it is.
  std::string FinishWithHeader(absl::string_view header) const;

 private:
  nlohmann::json header_ = nlohmann::json::object();
  std::string data_;
};

}  // namespace lockstep::testing
