#include "tests/testing/read_file.h"

#include <fstream>
#include <iterator>

namespace lockstep::testing {

std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace lockstep::testing
