#include "tools/models/model_list.h"

#include <absl/status/statusor.h>
#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>

#include <vector>

#include "bench/text_table.h"
#include "common/status_macros.h"
#include "hub/download_progress.h"
#include "worker/runtime/kv_capacity.h"
#include "worker/runtime/numerics.h"
#include "worker/weights/model_files.h"
#include "worker/weights/model_weights.h"

namespace lockstep {
namespace {

struct Weights {
  std::string format;
  int64_t packed_bytes = 0;
};

absl::StatusOr<Weights> WeightsOf(const LocalModel& model) {
  LOCKSTEP_ASSIGN_OR_RETURN(const Numerics numerics,
                            ParseNumerics("fast", "auto"));
  LOCKSTEP_ASSIGN_OR_RETURN(const ModelFiles files, OpenModel(model.path));
  const bool is_gguf = absl::EndsWithIgnoreCase(model.path, ".gguf");
  return Weights{.format = absl::StrCat(is_gguf ? "GGUF " : "safetensors ",
                                        absl::StrJoin(files.weight_types, "+")),
                 .packed_bytes = PackedBytes(*files.tensors, files.config,
                                             numerics.arithmetic)};
}

std::vector<std::string> RowOf(const LocalModel& model, int64_t usable_bytes) {
  std::vector<std::string> row = {model.name, ByteSizeText(model.bytes)};
  const auto weights = WeightsOf(model);
  if (!weights.ok()) {
    row.push_back("-");
    row.push_back("-");
    row.push_back(std::string(weights.status().message()));
    return row;
  }
  const bool fits =
      DefaultKvMemory(usable_bytes, /*local_ranks=*/1, weights->packed_bytes)
          .ok();
  row.push_back(ByteSizeText(weights->packed_bytes));
  row.push_back(fits ? "yes" : "no");
  row.push_back(weights->format);
  return row;
}

}  // namespace

std::string ModelTable(absl::Span<const LocalModel> models,
                       int64_t usable_bytes) {
  bench::TextTable table;
  table.Add({"model", "on disk", "in memory",
             absl::StrCat("fits in ", ByteSizeText(usable_bytes)), "weights"});
  for (const LocalModel& model : models) table.Add(RowOf(model, usable_bytes));
  return table.ToText();
}

}  // namespace lockstep
