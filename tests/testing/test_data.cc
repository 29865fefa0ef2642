#include "tests/testing/test_data.h"

#include <absl/strings/str_cat.h>
#include <glog/logging.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace lockstep::testing {

absl::StatusOr<std::string> TestData(const std::string& name) {
  const char* folder = std::getenv("LOCKSTEP_TEST_DATA");
  if (folder == nullptr || *folder == '\0') {
    return absl::NotFoundError(
        "LOCKSTEP_TEST_DATA is not set; ./lockstep test fetches the test data "
        "and sets it.");
  }
  const std::string path = absl::StrCat(folder, "/", name);
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) {
    return absl::NotFoundError(absl::StrCat(
        "there is no ", path, "; ./lockstep test fetches the test data."));
  }
  return path;
}

nlohmann::ordered_json ReadJson(const std::string& path) {
  std::ifstream file(path);
  CHECK(file.good()) << "cannot read " << path;
  auto value = nlohmann::ordered_json::parse(file, nullptr, false);
  CHECK(!value.is_discarded()) << path << " is no JSON";
  return value;
}

}  // namespace lockstep::testing
