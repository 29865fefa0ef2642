#include "bench/run_program.h"

#include <gflags/gflags.h>
#include <glog/logging.h>

#include <cstdio>

#include "common/environment_flags.h"

namespace lockstep::bench {

int RunProgram(const std::string& name, const std::string& usage, int argc,
               char** argv, absl::Status (*run)()) {
  FLAGS_logtostderr = true;
  FLAGS_minloglevel = google::GLOG_WARNING;
  google::InitGoogleLogging(argv[0]);
  gflags::SetUsageMessage(usage);
  absl::Status status = ParseFlags(argc, argv);
  if (status.ok()) status = run();
  if (status.ok()) return 0;
  std::fprintf(stderr, "%s: %s\n", name.c_str(),
               std::string(status.message()).c_str());
  return 1;
}

}  // namespace lockstep::bench
