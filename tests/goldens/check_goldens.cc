// Holds the engine to what a reference implementation computes; see README.md.
//
//   check_goldens --dir=tests/goldens/tiny [--model=MODEL.gguf]
//       [--arithmetic=fast]

#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_split.h>
#include <gflags/gflags.h>
#include <glog/logging.h>

#include <cstdlib>
#include <iostream>
#include <string>

#include "tests/goldens/golden_check.h"
#include "worker/runtime/numerics.h"

DEFINE_string(dir, "", "the folder of goldens; or the first argument");
DEFINE_string(model, "",
              "the model that a JSON file is about, or the folder it lies in; "
              "default: $LOCKSTEP_TEST_DATA/models");
DEFINE_string(tensor_parallel_sizes, "",
              "comma-separated; default: 1, 2, 3, 4, 8 and all that divide the "
              "heads");
DEFINE_string(arithmetic, "strict", "strict or fast");
DEFINE_string(kv_cache_type, "auto",
              "fp32, fp16, bf16, int8 or auto: fp16 in fast arithmetic, "
              "fp32 in strict");

namespace {

std::string Models() {
  const char* data = std::getenv("LOCKSTEP_TEST_DATA");
  if (!FLAGS_model.empty() || data == nullptr) return FLAGS_model;
  return absl::StrCat(data, "/models");
}

}  // namespace

int main(int argc, char** argv) {
  gflags::SetUsageMessage(
      "--dir=FOLDER [--model=FILE] [--arithmetic=fast] [--kv_cache_type=int8]");
  gflags::ParseCommandLineFlags(&argc, &argv, /*remove_flags=*/true);
  google::InitGoogleLogging(argv[0]);

  lockstep::goldens::GoldenCheckOptions options;
  options.folder = FLAGS_dir.empty() && argc > 1 ? argv[1] : FLAGS_dir;
  options.models = Models();
  for (const auto size :
       absl::StrSplit(FLAGS_tensor_parallel_sizes, ',', absl::SkipEmpty())) {
    options.tensor_parallel_sizes.emplace_back();
    if (!absl::SimpleAtoi(size, &options.tensor_parallel_sizes.back()) ||
        options.tensor_parallel_sizes.back() < 1) {
      std::cerr << "check_goldens: --tensor_parallel_sizes has \"" << size
                << "\", expected numbers of at least 1\n";
      return 2;
    }
  }

  const auto numerics =
      lockstep::ParseNumerics(FLAGS_arithmetic, FLAGS_kv_cache_type);
  if (!numerics.ok()) {
    std::cerr << "check_goldens: " << numerics.status().message() << "\n";
    return 2;
  }
  options.numerics = *numerics;

  const auto counts = lockstep::goldens::CheckGoldens(options, std::cout);
  if (!counts.ok()) {
    std::cerr << "check_goldens: " << counts.status().message() << "\n";
    return 2;
  }
  std::cout << counts->passed << " passed, " << counts->failed << " failed, "
            << counts->skipped << " skipped\n";
  return counts->failed == 0 && counts->passed > 0 ? 0 : 1;
}
