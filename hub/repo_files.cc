#include "hub/repo_files.h"

#include <absl/status/status.h>
#include <absl/strings/str_cat.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "common/status_macros.h"
#include "common/strict_json.h"
#include "hub/model_name.h"

namespace lockstep {
namespace {

// Empty where there is none.
std::string TextOf(const nlohmann::json& object, const char* field) {
  if (!object.is_object()) return "";
  const auto value = object.find(field);
  return value != object.end() && value->is_string() ? value->get<std::string>()
                                                     : "";
}

}  // namespace

absl::StatusOr<RepoFiles> ParseRepoFiles(const std::string& json,
                                         const std::string& url) {
  LOCKSTEP_ASSIGN_OR_RETURN(const nlohmann::json listing,
                            ParseStrictJson(json, url));
  RepoFiles files;
  files.commit = TextOf(listing, "sha");
  if (!IsCommit(files.commit) || !listing.contains("siblings")) {
    return absl::InvalidArgumentError(
        absl::StrCat(url, " lists no commit and files: is it a hub's?"));
  }
  for (const nlohmann::json& sibling : listing["siblings"]) {
    std::string name = TextOf(sibling, "rfilename");
    if (IsSafeFileName(name)) files.names.push_back(std::move(name));
  }
  return files;
}

}  // namespace lockstep
