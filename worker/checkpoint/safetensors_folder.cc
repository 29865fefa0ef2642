#include "worker/checkpoint/safetensors_folder.h"

#include <absl/strings/escaping.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/string_view.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <system_error>
#include <utility>

#include "common/status_macros.h"
#include "common/strict_json.h"

namespace lockstep {
namespace {

using nlohmann::json;

constexpr char kSingleFile[] = "model.safetensors";
constexpr char kIndexFile[] = "model.safetensors.index.json";
constexpr size_t kLongestName = 255;  // NAME_MAX of Linux

// Or a link of that name is there, wherever it leads: opening it says what is
// wrong with it.
bool Exists(const std::string& path) {
  std::error_code error;
  return std::filesystem::exists(std::filesystem::symlink_status(path, error));
}

// Whether it can be that of a file of the folder. What comes after a zero the
// system would not see.
bool IsFileName(absl::string_view name) {
  return !name.empty() && name.size() <= kLongestName && name != "." &&
         name != ".." &&
         name.find_first_of(absl::string_view("/\0", 2)) ==
             absl::string_view::npos;
}

// The index's weight_map: the file of each tensor.
absl::StatusOr<std::map<std::string, std::string>> ReadWeightMap(
    const std::string& path) {
  LOCKSTEP_ASSIGN_OR_RETURN(const json index, ReadStrictJson(path));
  const auto weight_map =
      index.is_object() ? index.find("weight_map") : index.end();
  if (weight_map == index.end() || !weight_map->is_object()) {
    return absl::InvalidArgumentError(absl::StrCat(
        path,
        ": \"weight_map\" is missing, expected the file of each tensor."));
  }
  std::map<std::string, std::string> files;
  for (const auto& [tensor, name] : weight_map->items()) {
    if (!name.is_string()) {
      return absl::InvalidArgumentError(
          absl::StrCat(path, ": the file of tensor \"",
                       absl::CHexEscape(tensor), "\" is not a name."));
    }
    files[tensor] = name.get<std::string>();
  }
  return files;
}

}  // namespace

absl::StatusOr<std::unique_ptr<SafetensorsFolder>> SafetensorsFolder::Open(
    const std::string& folder) {
  std::unique_ptr<SafetensorsFolder> source(new SafetensorsFolder);
  source->path_ = folder;
  const std::string index = absl::StrCat(folder, "/", kIndexFile);
  if (Exists(absl::StrCat(folder, "/", kSingleFile))) {
    LOCKSTEP_RETURN_IF_ERROR(source->AddFile(kSingleFile));
  } else if (Exists(index)) {
    LOCKSTEP_RETURN_IF_ERROR(source->AddIndexedFiles(index));
  } else {
    return absl::NotFoundError(absl::StrCat(
        folder, " has neither ", kSingleFile, " nor ", kIndexFile, "."));
  }
  return source;
}

absl::Status SafetensorsFolder::AddFile(const std::string& name) {
  LOCKSTEP_ASSIGN_OR_RETURN(
      auto file, SafetensorsFile::Open(absl::StrCat(path_, "/", name)));
  for (const auto& [tensor_name, tensor] : file->tensors()) {
    if (!tensors_.try_emplace(tensor_name, &tensor).second) {
      return absl::InvalidArgumentError(absl::StrCat(
          file->path(), ": tensor \"", absl::CHexEscape(tensor_name),
          "\" is in another file of the folder as well."));
    }
    file_of_[tensor_name] = file.get();
  }
  files_.push_back(std::move(file));
  return absl::OkStatus();
}

absl::Status SafetensorsFolder::AddIndexedFiles(const std::string& index_path) {
  LOCKSTEP_ASSIGN_OR_RETURN(const auto file_of, ReadWeightMap(index_path));
  std::set<std::string> names;
  for (const auto& [tensor, name] : file_of) names.insert(name);
  std::map<std::string, const SafetensorsFile*> opened;
  for (const std::string& name : names) {
    if (!IsFileName(name)) {
      return absl::InvalidArgumentError(
          absl::StrCat(index_path, ": the file \"",
                       absl::CHexEscape(name.substr(0, kLongestName)),
                       "\" is not in the same folder."));
    }
    LOCKSTEP_RETURN_IF_ERROR(AddFile(name));
    opened[name] = files_.back().get();
  }
  for (const auto& [tensor, name] : file_of) {
    const SafetensorsFile& file = *opened[name];
    if (file.tensors().count(tensor) == 0) {
      return absl::InvalidArgumentError(absl::StrCat(
          file.path(), " has no tensor \"", absl::CHexEscape(tensor),
          "\", which ", kIndexFile, " says it has."));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<Tensor> SafetensorsFolder::Get(absl::string_view name) const {
  const auto tensor = tensors_.find(name);
  if (tensor != tensors_.end()) return *tensor->second;
  return absl::NotFoundError(absl::StrCat(path_, " has no tensor ", name, "."));
}

void SafetensorsFolder::DropPages() const {
  for (const auto& file : files_) file->DropPages();
}

const std::string& SafetensorsFolder::FileOf(absl::string_view name) const {
  const auto file = file_of_.find(name);
  if (file != file_of_.end()) return file->second->path();
  return files_.size() == 1 ? files_[0]->path() : path_;
}

std::vector<std::string> SafetensorsFolder::Names() const {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : tensors_) names.emplace_back(name);
  return names;
}

}  // namespace lockstep
