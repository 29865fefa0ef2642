#include "worker/collectives/blamed_rank.h"

#include <absl/strings/cord.h>
#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>

#include <string>

namespace lockstep {
namespace {

constexpr char kRankUrl[] = "lockstep/blamed_rank";

}  // namespace

absl::Status BlameRank(int rank, absl::Status error) {
  error.SetPayload(kRankUrl, absl::Cord(absl::StrCat(rank)));
  return error;
}

std::optional<int> BlamedRank(const absl::Status& error) {
  const auto payload = error.GetPayload(kRankUrl);
  int rank = 0;
  if (!payload.has_value() || !absl::SimpleAtoi(std::string(*payload), &rank)) {
    return std::nullopt;
  }
  return rank;
}

}  // namespace lockstep
