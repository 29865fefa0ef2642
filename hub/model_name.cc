#include "hub/model_name.h"

#include <absl/strings/ascii.h>
#include <absl/strings/escaping.h>
#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_replace.h>
#include <absl/strings/str_split.h>
#include <absl/strings/strip.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <vector>

#include "common/status_macros.h"

namespace lockstep {
namespace {

constexpr size_t kMostBytes = 96;  // of each part, as hubs have it
constexpr size_t kCommitDigits = 40;
constexpr char kGguf[] = ".gguf";

bool Exists(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::exists(path, ignored);
}

bool IsNamePart(absl::string_view part) {
  const auto fits = [](char c) {
    return absl::ascii_isalnum(c) || c == '.' || c == '_' || c == '-';
  };
  return !part.empty() && part.size() <= kMostBytes && part[0] != '.' &&
         !absl::StrContains(part, "..") && !absl::StrContains(part, "--") &&
         std::all_of(part.begin(), part.end(), fits);
}

bool IsRepo(absl::string_view text) {
  const std::vector<absl::string_view> parts = absl::StrSplit(text, '/');
  // A file that is not there is a path with a mistake in it.
  return parts.size() == 2 && IsNamePart(parts[0]) && IsNamePart(parts[1]) &&
         !absl::EndsWithIgnoreCase(parts[1], kGguf);
}

absl::Status CheckPart(const std::string& model, absl::string_view what,
                       absl::string_view part) {
  if (IsSafeFileName(part)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "--model is ", absl::CHexEscape(model), "; its ", what, " \"",
      absl::CHexEscape(part), "\" is none: expected owner/name, ",
      "owner/name@revision, owner/name:file.gguf or both."));
}

absl::string_view LastPart(absl::string_view path) {
  return path.substr(path.rfind('/') + 1);
}

std::string WithoutGguf(absl::string_view name) {
  if (absl::EndsWithIgnoreCase(name, kGguf)) {
    name.remove_suffix(sizeof(kGguf) - 1);
  }
  return std::string(name);
}

// Of .../models--owner--name/snapshots/COMMIT; empty for other folders.
std::string RepoOfSnapshot(absl::string_view folder) {
  const std::vector<absl::string_view> parts = absl::StrSplit(folder, '/');
  if (parts.size() < 3 || parts[parts.size() - 2] != "snapshots") return "";
  absl::string_view name = parts[parts.size() - 3];
  if (!absl::ConsumePrefix(&name, "models--")) return "";
  return absl::StrReplaceAll(name, {{"--", "/"}});
}

}  // namespace

std::string HubModel::ToString() const {
  return absl::StrCat(repo, revision == "main" ? "" : "@",
                      revision == "main" ? "" : revision,
                      file.empty() ? "" : ":", file);
}

absl::StatusOr<std::optional<HubModel>> ParseHubModel(
    const std::string& model) {
  const std::pair<absl::string_view, absl::string_view> at_file =
      absl::StrSplit(model, absl::MaxSplits(':', 1));
  const std::pair<absl::string_view, absl::string_view> at_revision =
      absl::StrSplit(at_file.first, absl::MaxSplits('@', 1));
  if (!IsRepo(at_revision.first) || Exists(model)) {
    return std::optional<HubModel>();
  }
  HubModel parsed;
  parsed.repo = std::string(at_revision.first);
  if (absl::StrContains(at_file.first, '@')) {
    LOCKSTEP_RETURN_IF_ERROR(CheckPart(model, "revision", at_revision.second));
    parsed.revision = std::string(at_revision.second);
  }
  if (absl::StrContains(model, ':')) {
    LOCKSTEP_RETURN_IF_ERROR(CheckPart(model, "file", at_file.second));
    parsed.file = std::string(at_file.second);
  }
  return std::optional<HubModel>(std::move(parsed));
}

bool IsCommit(absl::string_view revision) {
  return revision.size() == kCommitDigits &&
         std::all_of(revision.begin(), revision.end(), absl::ascii_isxdigit);
}

bool IsSafeFileName(absl::string_view path) {
  constexpr size_t kMostPathBytes = 512;
  if (path.size() > kMostPathBytes) return false;
  if (!std::all_of(path.begin(), path.end(), absl::ascii_isgraph)) return false;
  for (const absl::string_view part : absl::StrSplit(path, '/')) {
    if (part.empty() || part == "." || part == "..") return false;
  }
  return true;
}

std::string DefaultModelName(const std::string& model) {
  const auto parsed = ParseHubModel(model);
  if (parsed.ok() && parsed->has_value()) {
    const HubModel& of_hub = **parsed;
    if (of_hub.file.empty()) return of_hub.repo;
    return absl::EndsWithIgnoreCase(of_hub.file, kGguf)
               ? WithoutGguf(LastPart(of_hub.file))
               : absl::StrCat(of_hub.repo, ":", of_hub.file);
  }
  absl::string_view path = model;
  while (path.size() > 1 && absl::ConsumeSuffix(&path, "/")) {
  }
  const std::string repo = RepoOfSnapshot(path);
  return repo.empty() ? WithoutGguf(LastPart(path)) : repo;
}

}  // namespace lockstep
