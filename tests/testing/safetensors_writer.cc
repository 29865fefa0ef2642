#include "tests/testing/safetensors_writer.h"

namespace lockstep::testing {

void SafetensorsWriter::AddTensor(absl::string_view name,
                                  absl::string_view dtype,
                                  const std::vector<int64_t>& shape,
                                  absl::string_view bytes) {
  header_[std::string(name)] = {
      {"dtype", std::string(dtype)},
      {"shape", shape},
      {"data_offsets", {data_.size(), data_.size() + bytes.size()}}};
  data_.append(bytes.data(), bytes.size());
}

std::string SafetensorsWriter::Finish() const {
  std::string header = header_.dump();
  header.resize((header.size() + 7) / 8 * 8, ' ');
  return FinishWithHeader(header);
}

std::string SafetensorsWriter::FinishWithHeader(
    absl::string_view header) const {
  const uint64_t size = header.size();
  std::string out(reinterpret_cast<const char*>(&size), sizeof(size));
  out.append(header.data(), header.size());
  return out + data_;
}

}  // namespace lockstep::testing
