#include <absl/strings/string_view.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "tokenizer_service/tokenizer.h"
#include "tokenizer_service/tokenizer_folder.h"

namespace {

constexpr char kTokenizer[] = R"({
  "version": "1.0", "added_tokens": [
    {"id": 2, "content": "<s>", "special": true, "single_word": false,
     "lstrip": false, "rstrip": false, "normalized": false}],
  "normalizer": null, "pre_tokenizer": null, "post_processor": null,
  "decoder": null, "model": {"type": "BPE", "vocab": {"a": 0, "b": 1},
  "merges": []}})";

// The files beside tokenizer.json, in the order in which the input has them.
constexpr const char* kNames[] = {"tokenizer_config.json", "config.json",
                                  "generation_config.json",
                                  "chat_template.jinja"};

// Removed when the fuzzer ends.
class Folder {
 public:
  Folder() {
    const std::filesystem::path parent = std::filesystem::temp_directory_path();
    std::string name = (parent / "tokenizer_XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) std::abort();
    path_ = name;
    Write("tokenizer.json", kTokenizer);
  }
  ~Folder() { std::filesystem::remove_all(path_); }

  void Write(const char* name, absl::string_view text) {
    std::ofstream(path_ / name, std::ios::binary)
        .write(text.data(), static_cast<std::streamsize>(text.size()));
  }
  void Remove(const char* name) { std::filesystem::remove(path_ / name); }
  std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

}  // namespace

// Whatever lies beside a tokenizer.json: an error, or a tokenizer whose special
// ids it knows. A byte 1 parts the files; one that is empty is not there.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static Folder folder;
  absl::string_view rest(reinterpret_cast<const char*>(data), size);
  for (const char* name : kNames) {
    const size_t end = std::min(rest.find('\1'), rest.size());
    if (end == 0) {
      folder.Remove(name);
    } else {
      folder.Write(name, rest.substr(0, end));
    }
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  const auto tokenizer = lockstep::OpenTokenizerFolder(folder.path());
  if (!tokenizer.ok()) return 0;
  (void)(*tokenizer)
      ->RenderChat(R"({"messages": [{"role": "user", "content": "a"}]})");
  return 0;
}
