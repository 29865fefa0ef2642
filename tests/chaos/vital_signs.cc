#include "tests/chaos/vital_signs.h"

#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_split.h>
#include <absl/time/clock.h>
#include <absl/time/time.h>
#include <grpcpp/grpcpp.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "proto/worker.grpc.pb.h"

namespace lockstep::testing {
namespace {

constexpr absl::Duration kIdleWithin = absl::Seconds(30);
// What malloc keeps of the most it ever held, in each of its arenas.
constexpr int64_t kKeptBytes = int64_t{24} << 20;
// gRPC starts some when it is busy.
constexpr int kSpareThreads = 8;

VitalSigns::OfRank Read(pid_t pid) {
  VitalSigns::OfRank signs;
  const std::string folder = absl::StrCat("/proc/", pid);
  std::error_code gone;
  const std::filesystem::directory_iterator files(folder + "/fd", gone);
  signs.open_files = static_cast<int>(std::distance(begin(files), end(files)));
  std::ifstream status(folder + "/status");
  for (std::string line; std::getline(status, line);) {
    const std::vector<std::string> words =
        absl::StrSplit(line, absl::ByAnyChar(" \t"), absl::SkipEmpty());
    int64_t number = 0;
    if (words.size() < 2 || !absl::SimpleAtoi(words[1], &number)) continue;
    if (words[0] == "VmRSS:") signs.resident_bytes = number << 10;
    if (words[0] == "Threads:") signs.threads = static_cast<int>(number);
  }
  return signs;
}

bool IsIdle(const v1::Load& load) {
  return load.running_sequences() == 0 && load.waiting_sequences() == 0 &&
         load.free_pages() + load.cached_pages() == load.total_pages();
}

// The first load in which the group is idle, else the last one seen in time.
v1::Load AwaitIdleLoad(const Ranks& ranks) {
  const auto stub = v1::Worker::NewStub(ranks.channel());
  grpc::ClientContext context;
  context.set_deadline(absl::ToChronoTime(absl::Now() + kIdleWithin));
  const auto reader = stub->WatchLoad(&context, {});
  v1::Load load, next;
  while (reader->Read(&next)) {
    load = next;
    if (IsIdle(load)) break;
  }
  context.TryCancel();
  return load;
}

}  // namespace

std::string VitalSigns::ToString() const {
  std::string text;
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    absl::StrAppend(&text, rank == 0 ? "" : "; ", "rank ", rank, ": ",
                    ranks[rank].resident_bytes >> 20, " MiB resident, ",
                    ranks[rank].open_files, " open files, ",
                    ranks[rank].threads, " threads");
  }
  return absl::StrCat(text, "; ", running_sequences, " running and ",
                      waiting_sequences, " waiting sequences, ", held_pages,
                      " pages held");
}

absl::StatusOr<VitalSigns> ReadVitalSigns(const Ranks& ranks) {
  const v1::Load load = AwaitIdleLoad(ranks);
  VitalSigns signs;
  signs.running_sequences = load.running_sequences();
  signs.waiting_sequences = load.waiting_sequences();
  signs.held_pages =
      load.total_pages() - load.free_pages() - load.cached_pages();
  for (int rank = 0; rank < ranks.size(); ++rank) {
    signs.ranks.push_back(Read(ranks.rank(rank).pid()));
  }
  if (load.total_pages() > 0 && IsIdle(load)) return signs;
  return absl::DeadlineExceededError(
      absl::StrCat("the group is not idle: ", signs.ToString(), "."));
}

absl::Status CheckNothingGrew(const VitalSigns& before,
                              const VitalSigns& after) {
  for (size_t rank = 0; rank < after.ranks.size(); ++rank) {
    const VitalSigns::OfRank& was = before.ranks[rank];
    const VitalSigns::OfRank& is = after.ranks[rank];
    if (is.open_files > was.open_files ||
        is.threads > was.threads + kSpareThreads ||
        is.resident_bytes > was.resident_bytes + kKeptBytes) {
      return absl::InternalError(
          absl::StrCat("rank ", rank, " has grown. Before: ", before.ToString(),
                       ". After: ", after.ToString(), "."));
    }
  }
  return absl::OkStatus();
}

}  // namespace lockstep::testing
