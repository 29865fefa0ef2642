#include "hub/hub_settings.h"

#include <absl/strings/ascii.h>
#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/string_view.h>
#include <absl/strings/strip.h>

#include <cstdlib>
#include <fstream>
#include <initializer_list>
#include <iterator>

namespace lockstep {
namespace {

constexpr char kDefaultEndpoint[] = "https://huggingface.co";

// The first of these that is set and not empty; else `otherwise`.
std::string FirstOf(const Environment& environment,
                    std::initializer_list<const char*> names,
                    absl::string_view otherwise) {
  for (const char* name : names) {
    const char* value = environment(name);
    if (value != nullptr && *value != '\0') return value;
  }
  return std::string(otherwise);
}

std::string WithHome(const Environment& environment, std::string path) {
  if (path != "~" && !absl::StartsWith(path, "~/")) return path;
  return absl::StrCat(FirstOf(environment, {"HOME"}, "/"), path.substr(1));
}

bool IsTrue(absl::string_view value) {
  return value == "1" || absl::EqualsIgnoreCase(value, "on") ||
         absl::EqualsIgnoreCase(value, "yes") ||
         absl::EqualsIgnoreCase(value, "true");
}

// Empty where it can not be read.
std::string ReadFile(const std::string& path) {
  std::ifstream file(path);
  return std::string((std::istreambuf_iterator<char>(file)),
                     std::istreambuf_iterator<char>());
}

}  // namespace

HubSettings HubSettingsFrom(const Environment& environment) {
  const auto path = [&environment](std::initializer_list<const char*> names,
                                   absl::string_view otherwise) {
    return WithHome(environment, FirstOf(environment, names, otherwise));
  };
  const std::string home =
      path({"HF_HOME"},
           absl::StrCat(path({"XDG_CACHE_HOME"}, "~/.cache"), "/huggingface"));
  HubSettings settings;
  settings.endpoint = FirstOf(environment, {"HF_ENDPOINT"}, kDefaultEndpoint);
  while (absl::EndsWith(settings.endpoint, "/")) settings.endpoint.pop_back();
  settings.cache = path({"HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"},
                        absl::StrCat(home, "/hub"));
  const std::string token =
      FirstOf(environment, {"HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"},
              ReadFile(path({"HF_TOKEN_PATH"}, absl::StrCat(home, "/token"))));
  settings.token = std::string(absl::StripAsciiWhitespace(token));
  settings.offline = IsTrue(
      FirstOf(environment, {"HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"}, ""));
  return settings;
}

HubSettings HubSettingsFromEnvironment() {
  return HubSettingsFrom([](const char* name) { return std::getenv(name); });
}

}  // namespace lockstep
