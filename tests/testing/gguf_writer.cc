#include "tests/testing/gguf_writer.h"

namespace lockstep::testing {
namespace {

constexpr size_t kAlignment = 32;

template <typename T>
void Put(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

void PutString(std::string& out, absl::string_view text) {
  Put<uint64_t>(out, text.size());
  out.append(text.data(), text.size());
}

template <typename T>
std::string Bytes(T value) {
  std::string out;
  Put(out, value);
  return out;
}

void PadTo(std::string& out, size_t alignment) {
  out.resize((out.size() + alignment - 1) / alignment * alignment);
}

}  // namespace

void GgufWriter::AddRaw(absl::string_view key, uint32_t type,
                        absl::string_view bytes) {
  PutString(metadata_, key);
  Put(metadata_, type);
  metadata_.append(bytes.data(), bytes.size());
  ++num_entries_;
}

void GgufWriter::AddUint(absl::string_view key, uint32_t value) {
  AddRaw(key, 4, Bytes(value));
}

void GgufWriter::AddInt(absl::string_view key, int32_t value) {
  AddRaw(key, 5, Bytes(value));
}

void GgufWriter::AddFloat(absl::string_view key, float value) {
  AddRaw(key, 6, Bytes(value));
}

void GgufWriter::AddBool(absl::string_view key, bool value) {
  AddRaw(key, 7, Bytes<uint8_t>(value));
}

void GgufWriter::AddString(absl::string_view key, absl::string_view value) {
  std::string bytes;
  PutString(bytes, value);
  AddRaw(key, 8, bytes);
}

void GgufWriter::AddStrings(absl::string_view key,
                            const std::vector<std::string>& values) {
  std::string bytes = Bytes<uint32_t>(8);
  Put<uint64_t>(bytes, values.size());
  for (const std::string& value : values) PutString(bytes, value);
  AddRaw(key, 9, bytes);
}

void GgufWriter::AddInts(absl::string_view key,
                         absl::Span<const int32_t> values) {
  std::string bytes = Bytes<uint32_t>(5);
  Put<uint64_t>(bytes, values.size());
  for (const int32_t value : values) Put(bytes, value);
  AddRaw(key, 9, bytes);
}

void GgufWriter::AddFloats(absl::string_view key,
                           absl::Span<const float> values) {
  std::string bytes = Bytes<uint32_t>(6);
  Put<uint64_t>(bytes, values.size());
  for (const float value : values) Put(bytes, value);
  AddRaw(key, 9, bytes);
}

void GgufWriter::AddTensor(absl::string_view name,
                           const std::vector<int64_t>& shape, uint32_t type,
                           absl::string_view bytes) {
  PadTo(data_, kAlignment);
  AddTensorInfo(name, shape, type, data_.size());
  data_.append(bytes.data(), bytes.size());
}

void GgufWriter::AddTensorInfo(absl::string_view name,
                               const std::vector<int64_t>& shape, uint32_t type,
                               uint64_t offset) {
  tensors_.push_back({std::string(name), shape, type, offset});
}

std::string GgufWriter::Finish() const {
  std::string out = "GGUF";
  Put<uint32_t>(out, 3);
  Put<uint64_t>(out, tensors_.size());
  Put<uint64_t>(out, num_entries_);
  out += metadata_;
  for (const TensorInfo& tensor : tensors_) {
    PutString(out, tensor.name);
    Put<uint32_t>(out, tensor.shape.size());
    for (size_t i = tensor.shape.size(); i > 0; --i) {
      Put<uint64_t>(out, tensor.shape[i - 1]);
    }
    Put(out, tensor.type);
    Put(out, tensor.offset);
  }
  PadTo(out, kAlignment);
  return out + data_;
}

}  // namespace lockstep::testing
