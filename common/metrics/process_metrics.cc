#include "common/metrics/process_metrics.h"

#include <absl/strings/numbers.h>
#include <absl/strings/str_split.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <system_error>
#include <vector>

namespace lockstep {
namespace {

constexpr MetricInfo kProcessMetrics[] = {
    {"lockstep_build_info", MetricType::kGauge, "program,version",
     "1; what runs is in the labels"},
    {"lockstep_ready", MetricType::kGauge, "",
     "1 while the process is ready for requests, as its health service says"},
    {"lockstep_live", MetricType::kGauge, "",
     "0 when the process has failed and should be replaced"},
    {"process_cpu_seconds_total", MetricType::kCounter, "",
     "processor time of all threads"},
    {"process_resident_memory_bytes", MetricType::kGauge, "",
     "memory in use, mapped model files included"},
    {"process_open_fds", MetricType::kGauge, "", "open file descriptors"},
    {"process_max_fds", MetricType::kGauge, "",
     "file descriptors there may be"},
    {"process_start_time_seconds", MetricType::kGauge, "",
     "when the process began, in Unix time"},
};

std::string ReadFile(const char* path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Of "name value\n" lines; 0 where there is none.
int64_t BootTime() {
  for (const absl::string_view line :
       absl::StrSplit(ReadFile("/proc/stat"), '\n')) {
    const std::vector<absl::string_view> words = absl::StrSplit(line, ' ');
    int64_t seconds = 0;
    if (words[0] == "btime" && absl::SimpleAtoi(words[1], &seconds))
      return seconds;
  }
  return 0;
}

// proc(5): the fields of /proc/self/stat after the name in parentheses, from
// the third on.
struct ProcessStat {
  double cpu_s = 0;
  double start_s = 0;  // after the boot
  int64_t resident_bytes = 0;
};

ProcessStat ReadStat() {
  constexpr size_t kUserTime = 14 - 3, kSystemTime = 15 - 3, kStart = 22 - 3,
                   kResidentPages = 24 - 3;
  const std::string text = ReadFile("/proc/self/stat");
  const std::vector<absl::string_view> fields =
      absl::StrSplit(absl::string_view(text).substr(text.rfind(')') + 2), ' ');
  ProcessStat stat;
  if (fields.size() <= kResidentPages) return stat;
  const auto number = [&fields](size_t index) {
    int64_t value = 0;
    return absl::SimpleAtoi(fields[index], &value) ? value : 0;
  };
  const double ticks = sysconf(_SC_CLK_TCK);
  stat.cpu_s = (number(kUserTime) + number(kSystemTime)) / ticks;
  stat.start_s = number(kStart) / ticks;
  stat.resident_bytes = number(kResidentPages) * sysconf(_SC_PAGESIZE);
  return stat;
}

int64_t NumOpenFiles() {
  std::error_code ignored;
  const std::filesystem::directory_iterator files("/proc/self/fd", ignored);
  return std::distance(begin(files), end(files)) - 1;  // its own
}

}  // namespace

absl::Span<const MetricInfo> ProcessMetrics() { return kProcessMetrics; }

void CollectProcess(absl::string_view program, absl::string_view version,
                    const HealthBoard& health, MetricWriter& writer) {
  static const int64_t boot_time = BootTime();
  writer.Add("lockstep_build_info", {program, version}, 1);
  const HealthReport report = health.report();
  writer.Add("lockstep_ready", {}, report.ready);
  writer.Add("lockstep_live", {}, report.live);
  const ProcessStat stat = ReadStat();
  writer.Add("process_cpu_seconds_total", {}, stat.cpu_s);
  writer.Add("process_resident_memory_bytes", {}, stat.resident_bytes);
  writer.Add("process_open_fds", {}, NumOpenFiles());
  rlimit files = {};
  getrlimit(RLIMIT_NOFILE, &files);
  writer.Add("process_max_fds", {}, files.rlim_cur);
  writer.Add("process_start_time_seconds", {}, boot_time + stat.start_s);
}

}  // namespace lockstep
