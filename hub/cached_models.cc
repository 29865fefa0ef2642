#include "hub/cached_models.h"

#include <absl/algorithm/container.h>
#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_replace.h>
#include <absl/strings/string_view.h>
#include <absl/strings/strip.h>

#include <filesystem>
#include <map>
#include <system_error>
#include <utility>

#include "hub/hub_cache.h"
#include "hub/model_name.h"
#include "hub/wanted_files.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

constexpr char kRepoPrefix[] = "models--";
constexpr char kGguf[] = ".gguf";

// Of what is in a folder; none where there is no such folder.
std::vector<fs::path> EntriesOf(const fs::path& folder) {
  std::error_code ignored;
  std::vector<fs::path> paths;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    paths.push_back(entry.path());
  }
  absl::c_sort(paths);
  return paths;
}

int64_t BytesOf(const fs::path& path) {
  std::error_code error;
  const auto bytes = fs::file_size(path, error);
  return error ? 0 : static_cast<int64_t>(bytes);
}

// The name of each commit that a branch or a tag is, "main" before others.
std::map<std::string, std::string> RevisionsOf(const HubCache& cache,
                                               const fs::path& repo_folder,
                                               const std::string& repo) {
  std::map<std::string, std::string> names;
  std::error_code ignored;
  const fs::path refs = repo_folder / "refs";
  for (auto entry = fs::recursive_directory_iterator(refs, ignored);
       entry != fs::recursive_directory_iterator(); entry.increment(ignored)) {
    const std::string name = entry->path().lexically_relative(refs).string();
    const auto commit = cache.CommitOf(repo, name);
    if (!commit.has_value()) continue;
    std::string& known = names[*commit];
    if (known.empty() || name == "main") known = name;
  }
  return names;
}

// A folder where model.file is empty, a GGUF file where it names the first of
// one's files; adds nothing where there is none of that kind.
void Add(const HubModel& model, const std::string& snapshot,
         const std::vector<std::string>& files,
         std::vector<LocalModel>* models) {
  const auto wanted = ChooseFiles(model, files, ModelPart::kAll);
  if (!wanted.ok() || wanted->entry != model.file) return;
  LocalModel& local = models->emplace_back();
  local.name = model.ToString();
  local.path =
      model.file.empty() ? snapshot : absl::StrCat(snapshot, "/", model.file);
  for (const std::string& name : wanted->names) {
    local.bytes += BytesOf(absl::StrCat(snapshot, "/", name));
  }
}

}  // namespace

std::vector<LocalModel> CachedModels(const std::string& folder) {
  const HubCache cache(folder);
  std::vector<LocalModel> models;
  for (const fs::path& repo_folder : EntriesOf(folder)) {
    const std::string base = repo_folder.filename().string();
    absl::string_view name = base;
    if (!absl::ConsumePrefix(&name, kRepoPrefix)) continue;
    const std::string repo = absl::StrReplaceAll(name, {{"--", "/"}});
    auto revisions = RevisionsOf(cache, repo_folder, repo);
    for (const fs::path& snapshot : EntriesOf(repo_folder / "snapshots")) {
      const std::string commit = snapshot.filename().string();
      const std::string& revision = revisions[commit];
      HubModel model = {.repo = repo,
                        .revision = revision.empty() ? commit : revision};
      std::vector<std::string> files = cache.FilesOf(repo, commit);
      absl::c_sort(files);
      Add(model, snapshot.string(), files, &models);
      for (const std::string& file : files) {
        if (!absl::EndsWithIgnoreCase(file, kGguf)) continue;
        model.file = file;
        Add(model, snapshot.string(), files, &models);
      }
    }
  }
  return models;
}

std::vector<LocalModel> ModelsIn(const std::string& folder) {
  std::vector<LocalModel> models;
  for (const fs::path& path : EntriesOf(folder)) {
    LocalModel local = {.name = path.string(), .path = path.string()};
    if (absl::EndsWithIgnoreCase(local.path, kGguf)) {
      local.bytes = BytesOf(path);
    } else if (fs::exists(path / "config.json")) {
      for (const fs::path& file : EntriesOf(path)) {
        local.bytes += BytesOf(file);
      }
    } else {
      continue;
    }
    models.push_back(std::move(local));
  }
  return models;
}

}  // namespace lockstep
