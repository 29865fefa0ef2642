#include "tests/goldens/text_goldens.h"

#include <absl/status/status.h>
#include <absl/strings/str_cat.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

namespace lockstep::goldens {
namespace {

using nlohmann::json;

// The weights are dequantized exactly; what remains is the order of sums.
constexpr float kRounding = 1e-3;

GoldenPrompt ReadPrompt(const json& entry) {
  GoldenPrompt prompt;
  prompt.name = entry.at("name");
  prompt.ids = entry.at("ids").get<std::vector<uint32_t>>();
  prompt.greedy = entry.at("greedy").get<std::vector<uint32_t>>();
  prompt.margins = entry.at("margin").get<std::vector<float>>();
  prompt.top_logprobs =
      entry.at("top20").get<std::vector<std::pair<uint32_t, float>>>();
  prompt.text = entry.at("rendered");
  if (entry.contains("messages")) prompt.messages = entry["messages"].dump();
  return prompt;
}

// Empty where there is none.
std::string FindModel(const std::string& name, const std::string& models) {
  namespace fs = std::filesystem;
  const fs::path path =
      fs::is_directory(models) ? models / fs::path(name) : fs::path(models);
  return fs::exists(path) ? path : fs::path();
}

}  // namespace

absl::StatusOr<std::optional<GoldenCase>> ReadTextGoldens(
    const std::string& path, const std::string& models) {
  std::ifstream file(path);
  const json root = json::parse(file, nullptr, /*allow_exceptions=*/false);
  if (root.is_discarded()) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": not JSON"));
  }
  if (!root.is_object() || !root.contains("made") ||
      !root.contains("prompts")) {
    return std::nullopt;
  }
  // The library throws where a field is missing or of another type.
  try {
    GoldenCase result;
    const std::string model = root["made"].at("model");
    result.name = std::filesystem::path(model).stem();
    result.model_path = FindModel(model, models);
    result.sha256 = root["made"].at("sha256");
    result.rounding = kRounding;
    for (const json& entry : root["prompts"]) {
      result.prompts.push_back(ReadPrompt(entry));
    }
    return result;
  } catch (const json::exception& error) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": ", error.what()));
  }
}

}  // namespace lockstep::goldens
