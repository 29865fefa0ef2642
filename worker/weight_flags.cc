#include "worker/weight_flags.h"

#include <absl/strings/str_cat.h>
#include <gflags/gflags.h>

#include "common/flag_check.h"
#include "common/status_macros.h"

DEFINE_string(quantize, "none",
              "Rounds matrices of floats as they are loaded: q8_0 or q4_0.");
DEFINE_bool(verify_weights, false,
            "Read every byte of the weights before the group forms: a rank "
            "whose copy differs from the leader's, however little, is "
            "refused. The same on all ranks.");
DEFINE_string(load_format, "auto",
              "auto: the model's weights; dummy: random ones, for "
              "measurements. Only config.json has to be there.");
DEFINE_int32(load_timeout, 1800,
             "Seconds within which all ranks must have loaded the model, once "
             "the group has formed. The leader's counts.");

namespace lockstep {

absl::StatusOr<WeightOptions> WeightOptionsFromFlags() {
  WeightOptions options;
  if (FLAGS_quantize == "q8_0") {
    options.rounded_to = kernels::DType::kQ8_0;
  } else if (FLAGS_quantize == "q4_0") {
    options.rounded_to = kernels::DType::kQ4_0;
  } else if (FLAGS_quantize != "none") {
    return absl::InvalidArgumentError(
        absl::StrCat("--quantize is \"", FLAGS_quantize,
                     "\"; it must be none, q8_0 or q4_0."));
  }
  options.verified = FLAGS_verify_weights;
  options.random = FLAGS_load_format == "dummy";
  if (!options.random && FLAGS_load_format != "auto") {
    return absl::InvalidArgumentError(
        absl::StrCat("--load_format is \"", FLAGS_load_format,
                     "\"; it must be auto or dummy."));
  }
  return options;
}

absl::StatusOr<absl::Duration> LoadTimeoutFromFlags() {
  constexpr int kMost = 1 << 20;
  LOCKSTEP_RETURN_IF_ERROR(
      CheckRangeFlag("load_timeout", FLAGS_load_timeout, 1, kMost));
  return absl::Seconds(FLAGS_load_timeout);
}

std::string ToString(const WeightOptions& options) {
  const char* quantize = "none";
  if (options.rounded_to.has_value()) {
    quantize = options.rounded_to == kernels::DType::kQ8_0 ? "q8_0" : "q4_0";
  }
  return absl::StrCat("--quantize=", quantize,
                      " --load_format=", options.random ? "dummy" : "auto",
                      " --verify_weights=", options.verified);
}

}  // namespace lockstep
