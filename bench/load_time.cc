#include "bench/load_time.h"

#include <chrono>
#include <fstream>
#include <string>

#include "bench/engine_session.h"
#include "common/status_macros.h"

namespace lockstep::bench {
namespace {

// A field of /proc/self/status, such as "VmRSS:"; 0 where there is none.
int64_t StatusBytes(const std::string& field) {
  std::ifstream file("/proc/self/status");
  std::string name;
  while (file >> name) {
    int64_t kib = 0;
    if (name == field && file >> kib) return kib << 10;
  }
  return 0;
}

double SecondsSince(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

}  // namespace

absl::StatusOr<LoadResult> MeasureLoad(const RankOptions& options) {
  LoadResult result;
  const Clock::time_point begin = Clock::now();
  LOCKSTEP_ASSIGN_OR_RETURN(auto session, EngineSession::Open(options));
  result.load_s = SecondsSince(begin);
  session->Add({.prompt = {0}, .max_tokens = 1});
  while (session->HasWork()) LOCKSTEP_RETURN_IF_ERROR(session->Step());
  result.first_token_s = SecondsSince(begin);
  result.resident_bytes = StatusBytes("VmRSS:");
  result.anonymous_bytes = StatusBytes("RssAnon:");
  return result;
}

}  // namespace lockstep::bench
