#pragma once

#include <functional>
#include <string>

namespace lockstep {

// Where models come from and where they are kept, by the variables that Hugging
// Face's own programs read: HF_ENDPOINT, HF_TOKEN (or the file HF_TOKEN_PATH,
// which `hf auth login` writes), HF_HUB_CACHE, HF_HOME, XDG_CACHE_HOME,
// HF_HUB_OFFLINE and TRANSFORMERS_OFFLINE.
struct HubSettings {
  std::string endpoint;  // "https://huggingface.co", without a "/" at its end
  std::string cache;     // a folder, which need not be there
  std::string token;     // empty: none
  bool offline = false;
};

// A variable's value, null where it is not set.
using Environment = std::function<const char*(const char*)>;

HubSettings HubSettingsFrom(const Environment& environment);

// Of this process.
HubSettings HubSettingsFromEnvironment();

}  // namespace lockstep
