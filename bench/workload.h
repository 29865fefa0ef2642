#pragma once

#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>

#include <string>
#include <vector>

namespace lockstep::bench {

// One line of the engine bench, by the name it has on the command line.
struct Workload {
  enum class Kind {
    kPrefill,  // ppN: a prompt of N tokens
    kDecode,   // tgN: N tokens after a prompt of one
    kBatch,    // bN: N sequences decode together, 128 after 128
    kContext,  // ctxN: 64 tokens after a prompt of N
    kServe,    // serveN: N clients, 128 after 128, one request after another
    kPrefixCache,  // prefix-on, prefix-off: requests with one long prefix
    kLoad,         // load: from the file to the first token
  };

  Kind kind = Kind::kPrefill;
  int size = 0;                    // N
  bool uses_prefix_cache = false;  // of kPrefixCache
  std::string name;
};

// "pp512,tg128,b8,prefix": `prefix` is both prefix-off and prefix-on.
// INVALID_ARGUMENT names the word that is none, and what there is.
absl::StatusOr<std::vector<Workload>> ParseWorkloads(absl::string_view text);

}  // namespace lockstep::bench
