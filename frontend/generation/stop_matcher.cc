#include "frontend/generation/stop_matcher.h"

#include <absl/strings/match.h>

#include <utility>

namespace lockstep {
namespace {

struct Candidate {
  const std::string* longest = nullptr;  // that `text` starts with
  bool undecided = false;  // `text` is a proper prefix of a stop string
};

Candidate Match(const std::vector<std::string>& stops, absl::string_view text) {
  Candidate result;
  for (const std::string& stop : stops) {
    if (absl::StartsWith(text, stop)) {
      if (result.longest == nullptr || stop.size() > result.longest->size()) {
        result.longest = &stop;
      }
    } else if (absl::StartsWith(stop, text)) {
      result.undecided = true;
    }
  }
  return result;
}

}  // namespace

StopMatcher::StopMatcher(std::vector<std::string> stops, bool include_in_output)
    : stops_(std::move(stops)), include_in_output_(include_in_output) {}

std::string StopMatcher::Add(absl::string_view text) {
  if (match_.has_value()) return "";
  if (stops_.empty()) return std::string(text);
  held_.append(text.data(), text.size());
  return Scan(/*at_end=*/false);
}

std::string StopMatcher::Finish() {
  return match_.has_value() ? "" : Scan(/*at_end=*/true);
}

std::string StopMatcher::Scan(bool at_end) {
  const absl::string_view held = held_;
  for (size_t at = 0; at < held.size(); ++at) {
    const Candidate candidate = Match(stops_, held.substr(at));
    if (candidate.undecided && !at_end) {
      std::string shown(held.substr(0, at));
      held_.erase(0, at);
      return shown;
    }
    if (candidate.longest != nullptr) {
      match_ = *candidate.longest;
      std::string shown(
          held.substr(0, include_in_output_ ? at + match_->size() : at));
      held_.clear();
      return shown;
    }
  }
  return std::exchange(held_, "");
}

}  // namespace lockstep
