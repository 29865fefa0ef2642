#include "worker/runtime/build_id.h"

#include "common/digest.h"
#include "common/mapped_file.h"
#include "common/status_macros.h"

namespace lockstep {

absl::StatusOr<std::string> BuildId() {
  LOCKSTEP_ASSIGN_OR_RETURN(const auto binary,
                            MappedFile::Open("/proc/self/exe"));
  DigestBuilder builder;
  builder.Add(binary->text());
  return ToHex(builder.Finish());
}

}  // namespace lockstep
