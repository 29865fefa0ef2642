// A hub for scripts: serves folders and files as models, until it is killed.
//
//   serve_hub owner/name=FOLDER owner/other=FILE.gguf …
//
// Its first line of output is its address.

#include <absl/strings/str_split.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <string>
#include <utility>

#include "tests/testing/hub/fake_hub.h"
#include "tests/testing/read_file.h"

namespace lockstep::testing {
namespace {

FakeHub::File FileAt(const std::filesystem::path& path) {
  const std::string name = path.filename().string();
  return {.content = ReadFile(path.string()),
          .large = path.extension() == ".safetensors" ||
                   path.extension() == ".gguf" || name == "tokenizer.json"};
}

FakeHub::Model ModelAt(const std::filesystem::path& path) {
  FakeHub::Model model;
  if (!std::filesystem::is_directory(path)) {
    model.files[path.filename().string()] = FileAt(path);
    return model;
  }
  for (const auto& entry : std::filesystem::directory_iterator(path)) {
    model.files[entry.path().filename().string()] = FileAt(entry.path());
  }
  return model;
}

int Serve(int argc, char** argv) {
  FakeHub hub;
  for (int i = 1; i < argc; ++i) {
    const std::pair<std::string, std::string> model =
        absl::StrSplit(argv[i], absl::MaxSplits('=', 1));
    hub.SetModel(model.first, ModelAt(model.second));
  }
  std::printf("%s\n", hub.endpoint().c_str());
  std::fflush(stdout);
  return pause();
}

}  // namespace
}  // namespace lockstep::testing

int main(int argc, char** argv) { return lockstep::testing::Serve(argc, argv); }
