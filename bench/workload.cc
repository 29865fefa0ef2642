#include "bench/workload.h"

#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_split.h>
#include <absl/strings/strip.h>

#include "common/status_macros.h"

namespace lockstep::bench {
namespace {

struct Sized {
  const char* prefix;
  Workload::Kind kind;
};

// No prefix is the beginning of another.
constexpr Sized kSized[] = {{"pp", Workload::Kind::kPrefill},
                            {"tg", Workload::Kind::kDecode},
                            {"b", Workload::Kind::kBatch},
                            {"ctx", Workload::Kind::kContext},
                            {"serve", Workload::Kind::kServe}};

absl::StatusOr<Workload> ParseSized(absl::string_view name) {
  for (const Sized& sized : kSized) {
    absl::string_view number = name;
    int size = 0;
    if (absl::ConsumePrefix(&number, sized.prefix) &&
        absl::SimpleAtoi(number, &size) && size > 0) {
      return Workload{
          .kind = sized.kind, .size = size, .name = std::string(name)};
    }
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "--workloads has \"", name,
      "\"; there are ppN, tgN, bN, ctxN, serveN, prefix and load, where N is a "
      "number of at least 1, such as pp512."));
}

}  // namespace

absl::StatusOr<std::vector<Workload>> ParseWorkloads(absl::string_view text) {
  std::vector<Workload> workloads;
  for (absl::string_view name : absl::StrSplit(text, ',')) {
    if (name == "load") {
      workloads.push_back({.kind = Workload::Kind::kLoad, .name = "load"});
    } else if (name == "prefix") {
      for (const bool is_on : {false, true}) {
        workloads.push_back({.kind = Workload::Kind::kPrefixCache,
                             .uses_prefix_cache = is_on,
                             .name = is_on ? "prefix-on" : "prefix-off"});
      }
    } else {
      LOCKSTEP_ASSIGN_OR_RETURN(workloads.emplace_back(), ParseSized(name));
    }
  }
  return workloads;
}

}  // namespace lockstep::bench
