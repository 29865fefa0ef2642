#include "tests/goldens/golden_comparison.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>
#include <absl/types/span.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace lockstep::goldens {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();

double Distance(double a, double b) {
  const double distance = std::abs(a - b);
  return std::isnan(distance) ? kInfinite : distance;
}

// Of the last rows of the prompt.
double LogitDifference(const GoldenPrompt& prompt, const GoldenAnswer& answer) {
  if (answer.logits.size() != prompt.logits_rows) return kInfinite;
  const size_t vocab_size = prompt.logits.size() / prompt.logits_rows;
  double largest = 0;
  for (int row = 0; row < prompt.logits_rows; ++row) {
    if (answer.logits[row].size() != vocab_size) return kInfinite;
    const float* expected = prompt.logits.data() + row * vocab_size;
    for (size_t i = 0; i < vocab_size; ++i) {
      largest = std::max(largest, Distance(answer.logits[row][i], expected[i]));
    }
  }
  return largest;
}

double LogSumExp(absl::Span<const float> logits) {
  const double max = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float logit : logits) sum += std::exp(logit - max);
  return max + std::log(sum);
}

double LogprobDifference(const GoldenPrompt& prompt,
                         const GoldenAnswer& answer) {
  if (answer.logits.empty()) return kInfinite;
  const std::vector<float>& logits = answer.logits.back();
  const double normalizer = LogSumExp(logits);
  double largest = 0;
  for (const auto& [id, logprob] : prompt.top_logprobs) {
    if (id >= logits.size()) return kInfinite;
    largest = std::max(largest, Distance(logits[id] - normalizer, logprob));
  }
  return largest;
}

}  // namespace

void Add(const GoldenPrompt& prompt, const GoldenAnswer& answer,
         const Tolerance& tolerance, Comparison* comparison) {
  const double difference = prompt.logits_rows > 0
                                ? LogitDifference(prompt, answer)
                                : LogprobDifference(prompt, answer);
  if (difference >= comparison->largest_difference) {
    comparison->largest_difference = difference;
    comparison->largest_at = prompt.name;
  }

  for (int step = 0; step < prompt.greedy.size(); ++step) {
    const uint32_t expected = prompt.greedy[step];
    const uint32_t found = step < answer.tokens.size()
                               ? answer.tokens[step]
                               : std::numeric_limits<uint32_t>::max();
    if (found == expected) {
      ++comparison->ids_equal;
      continue;
    }
    if (prompt.margins[step] >= tolerance.margin &&
        !comparison->first_differing.has_value()) {
      comparison->first_differing = {prompt.name, step, found, expected,
                                     prompt.margins[step]};
    }
    return;
  }
}

bool Agrees(const Comparison& comparison, const Tolerance& tolerance) {
  return comparison.largest_difference < tolerance.difference &&
         !comparison.first_differing.has_value();
}

std::string Describe(const Comparison& comparison) {
  const std::string logits =
      absl::StrFormat("largest logit difference %.2g (%s)",
                      comparison.largest_difference, comparison.largest_at);
  if (!comparison.first_differing.has_value()) {
    return absl::StrCat(logits, ", ", comparison.ids_equal,
                        " greedy ids equal");
  }
  const DifferingId& id = *comparison.first_differing;
  return absl::StrCat(logits, ", first differing id: ", id.prompt, " step ",
                      id.step, " has ", id.found, ", expected ", id.expected,
                      " with a margin of ", id.margin);
}

}  // namespace lockstep::goldens
