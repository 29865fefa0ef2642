#pragma once

#include <absl/strings/string_view.h>

#include <optional>
#include <string>
#include <vector>

namespace lockstep {

// Ends a text at the first of its stop strings, however the text is cut into
// pieces.
//
//   StopMatcher matcher({"\n\n", "User:"}, /*include_in_output=*/false);
//   show(matcher.Add("Hello\n"));   // "Hello": the newline could be a start
//   show(matcher.Add("\nUser"));    // "", and match() is "\n\n"
//
// The match that starts first wins; of those that start together the longest.
// Text that could still turn out to be part of a match is held back, so not a
// byte of a match is ever shown. What is shown, and match(), are a function of
// the whole text alone. Not thread-safe.
class StopMatcher {
 public:
  // Stop strings are not empty. include_in_output: the match is shown too.
  StopMatcher(std::vector<std::string> stops, bool include_in_output);

  // The text that can be shown now. Empty once there is a match.
  std::string Add(absl::string_view text);

  // The text ends here: what was held back, up to a match if it is one.
  std::string Finish();

  bool has_stops() const { return !stops_.empty(); }
  // The stop string that ended the text.
  const std::optional<std::string>& match() const { return match_; }

 private:
  std::string Scan(bool at_end);

  const std::vector<std::string> stops_;
  const bool include_in_output_;
  std::string held_;  // not shown yet; could be the start of a match
  std::optional<std::string> match_;
};

}  // namespace lockstep
