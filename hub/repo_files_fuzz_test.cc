#include <cstddef>
#include <cstdint>
#include <string>

#include "hub/model_name.h"
#include "hub/repo_files.h"

// Whatever the text: an error, or a commit and names that stay in its folder.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto files = lockstep::ParseRepoFiles(text, "fuzz.json");
  if (!files.ok()) return 0;
  if (!lockstep::IsCommit(files->commit)) __builtin_trap();
  for (const std::string& name : files->names) {
    if (!lockstep::IsSafeFileName(name)) __builtin_trap();
  }
  return 0;
}
