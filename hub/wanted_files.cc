#include "hub/wanted_files.h"

#include <absl/algorithm/container.h>
#include <absl/strings/match.h>
#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>
#include <absl/strings/str_join.h>
#include <absl/strings/strip.h>

#include <algorithm>
#include <iterator>

#include "common/status_macros.h"

namespace lockstep {
namespace {

constexpr char kGguf[] = ".gguf";
constexpr char kSafetensors[] = ".safetensors";
constexpr size_t kShownNames = 12;

bool IsInFolder(absl::string_view name) { return absl::StrContains(name, '/'); }

// Those of a model's vision part are none by themselves.
bool IsGgufModel(absl::string_view name) {
  return absl::EndsWithIgnoreCase(name, kGguf) &&
         !absl::StartsWithIgnoreCase(name.substr(name.rfind('/') + 1),
                                     "mmproj");
}

// A file's place among several that are one: "NAME-00001-of-00003.gguf".
struct Split {
  std::string stem;
  int number = 1;
  int of = 1;
};

Split SplitOf(absl::string_view name) {
  constexpr size_t kDigits = 5;
  constexpr size_t kTail = sizeof("-00001-of-00003.gguf") - 1;
  Split split = {.stem = std::string(name)};
  if (name.size() <= kTail) return split;
  absl::string_view tail = name.substr(name.size() - kTail);
  int number = 0;
  int of = 0;
  if (absl::ConsumePrefix(&tail, "-") &&
      absl::SimpleAtoi(tail.substr(0, kDigits), &number) &&
      absl::StartsWith(tail.substr(kDigits), "-of-") &&
      absl::SimpleAtoi(tail.substr(kDigits + 4, kDigits), &of) && number >= 1 &&
      number <= of) {
    return {.stem = std::string(name.substr(0, name.size() - kTail)),
            .number = number,
            .of = of};
  }
  return split;
}

absl::Status NotThere(const HubModel& model, absl::string_view what,
                      std::vector<std::string> instead) {
  const size_t all = instead.size();
  if (all > kShownNames) instead.resize(kShownNames);
  return absl::NotFoundError(absl::StrCat(
      model.repo, " has ", what,
      all == 0 ? std::string(".")
               : absl::StrCat("; it has ", absl::StrJoin(instead, ", "),
                              all > kShownNames ? ", …" : "",
                              ": --model=", model.repo, ":FILE names one.")));
}

// Whether `wanted` names a file, by its name or by the end of it.
bool IsNamed(absl::string_view name, absl::string_view wanted) {
  if (name == wanted) return true;
  const std::string stem = SplitOf(name).stem;
  absl::string_view end = stem;
  absl::ConsumeSuffix(&end, kGguf);
  return absl::EndsWithIgnoreCase(end, absl::StrCat("-", wanted)) ||
         absl::EndsWithIgnoreCase(end, absl::StrCat(".", wanted));
}

absl::StatusOr<WantedFiles> ChooseGguf(const HubModel& model,
                                       absl::Span<const std::string> files) {
  std::vector<std::string> models;  // the first file of each
  for (const std::string& name : files) {
    if (IsGgufModel(name) && SplitOf(name).number == 1) models.push_back(name);
  }
  std::vector<std::string> named;
  absl::c_copy_if(models, std::back_inserter(named),
                  [&](const std::string& name) {
                    return model.file.empty() || IsNamed(name, model.file);
                  });
  if (absl::c_linear_search(models, model.file)) named = {model.file};
  if (named.empty()) {
    return NotThere(model, absl::StrCat("no file ", model.file), models);
  }
  if (named.size() > 1) {
    return NotThere(model, "several models", named);
  }
  WantedFiles wanted;
  wanted.entry = named.front();
  const Split first = SplitOf(wanted.entry);
  for (const std::string& name : files) {
    const Split split = SplitOf(name);
    if (split.stem == first.stem && split.of == first.of) {
      wanted.names.push_back(name);
    }
  }
  if (static_cast<int>(wanted.names.size()) < first.of) {
    return absl::NotFoundError(
        absl::StrCat(model.repo, " has ", wanted.names.size(), " of the ",
                     first.of, " files of ", wanted.entry, "."));
  }
  return wanted;
}

// Some have the same weights twice, the others under names of their own.
std::vector<std::string> WeightFiles(absl::Span<const std::string> files) {
  std::vector<std::string> all;
  std::vector<std::string> usual;
  for (const std::string& name : files) {
    if (IsInFolder(name) || !absl::EndsWith(name, kSafetensors)) continue;
    all.push_back(name);
    if (absl::StartsWith(name, "model")) usual.push_back(name);
  }
  return usual.empty() ? all : usual;
}

}  // namespace

absl::StatusOr<WantedFiles> ChooseFiles(const HubModel& model,
                                        absl::Span<const std::string> files,
                                        ModelPart part) {
  const auto has = [&files](const char* name) {
    return absl::c_linear_search(files, name);
  };
  const std::vector<std::string> weights = WeightFiles(files);
  const bool is_folder = has("config.json") && !weights.empty();
  if (!model.file.empty() ||
      (!is_folder && absl::c_any_of(files, IsGgufModel))) {
    return ChooseGguf(model, files);
  }
  // A cache may hold a model's text alone.
  const bool is_text = part == ModelPart::kText && has("tokenizer.json");
  if (!is_folder && !is_text) {
    return absl::NotFoundError(absl::StrCat(
        model.repo, " has neither config.json with safetensors nor a GGUF ",
        "file; other formats are not read."));
  }
  WantedFiles wanted;
  absl::c_copy_if(
      files, std::back_inserter(wanted.names), [](const std::string& name) {
        return !IsInFolder(name) && (absl::EndsWith(name, ".json") ||
                                     absl::EndsWith(name, ".jinja"));
      });
  if (part == ModelPart::kAll) {
    wanted.names.insert(wanted.names.end(), weights.begin(), weights.end());
  }
  return wanted;
}

}  // namespace lockstep
