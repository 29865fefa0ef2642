#include "tests/testing/write_file.h"

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <system_error>

namespace lockstep::testing {

void WriteFile(const std::string& path, absl::string_view content) {
  std::error_code error;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(),
                                      error);
  std::ofstream file(path, std::ios::binary);
  file.write(content.data(), static_cast<std::streamsize>(content.size()));
  file.close();
  if (file) return;
  std::fprintf(stderr, "cannot write %s\n", path.c_str());
  std::abort();
}

}  // namespace lockstep::testing
