#pragma once

#include <absl/status/statusor.h>

#include <nlohmann/json.hpp>
#include <string>

namespace lockstep::testing {

// The path of a file or folder under $LOCKSTEP_TEST_DATA, where the default
// model and the real tokenizers lie (`./lockstep test` fetches them):
//
//   const auto path = TestData("tokenizers/qwen3");
//   ASSERT_TRUE(path.ok()) << path.status();
//
// NOT_FOUND, with what to do, where the variable is not set or there is no such
// file: a test that needs one fails, it is never skipped.
absl::StatusOr<std::string> TestData(const std::string& name);

// A checked-in JSON file, named from the workspace's root. CHECK-fails where
// it is missing from the test's data, or no JSON. Keys keep their order, which
// templates show.
nlohmann::ordered_json ReadJson(const std::string& path);

}  // namespace lockstep::testing
