#include "common/security/file_watch.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>
#include <glog/logging.h>
#include <pthread.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include "common/status_macros.h"

namespace lockstep {
namespace {

absl::StatusOr<std::string> ReadFile(const NamedFile& file) {
  const auto refuse = [&file](absl::string_view why) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--", file.flag, " is \"", file.path, "\", which ", why, "."));
  };
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> stream(
      std::fopen(file.path.c_str(), "rbe"), std::fclose);
  if (stream == nullptr) {
    return refuse(absl::StrCat("can not be opened: ", std::strerror(errno)));
  }
  std::string content;
  char buffer[4096];
  while (const size_t bytes =
             std::fread(buffer, 1, sizeof(buffer), stream.get())) {
    content.append(buffer, bytes);
    if (content.size() > FileWatch::kMaxBytes) {
      return refuse(
          absl::StrCat("is larger than ", FileWatch::kMaxBytes, " bytes"));
    }
  }
  if (std::ferror(stream.get()) != 0) return refuse("can not be read");
  return content;
}

// Sizes keep two files apart.
SecretDigest DigestOf(const FileWatch::Contents& contents) {
  std::string all;
  for (const std::string& content : contents) {
    absl::StrAppend(&all, content.size(), ":", content);
  }
  return SecretDigest::Of(all);
}

}  // namespace

absl::StatusOr<std::unique_ptr<FileWatch>> FileWatch::Start(
    std::vector<NamedFile> files, Take take, absl::Duration every) {
  std::unique_ptr<FileWatch> watch(
      new FileWatch(std::move(files), std::move(take)));
  LOCKSTEP_RETURN_IF_ERROR(watch->Look());
  watch->thread_ =
      std::thread([watch = watch.get(), every] { watch->Run(every); });
  pthread_setname_np(watch->thread_.native_handle(), "file-watch");
  return watch;
}

FileWatch::~FileWatch() {
  if (!thread_.joinable()) return;
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  thread_.join();
}

absl::StatusOr<FileWatch::Contents> FileWatch::Read() const {
  Contents contents;
  for (const NamedFile& file : files_) {
    LOCKSTEP_ASSIGN_OR_RETURN(std::string content, ReadFile(file));
    contents.push_back(std::move(content));
  }
  return contents;
}

absl::Status FileWatch::Look() {
  const auto contents = Read();
  const SecretDigest digest =
      contents.ok() ? DigestOf(*contents)
                    : SecretDigest::Of(contents.status().message());
  if (digest.Matches(std::exchange(seen_, digest))) return absl::OkStatus();
  if (!contents.ok()) return contents.status();
  LOCKSTEP_RETURN_IF_ERROR(take_(*contents));
  LOG(INFO) << "read "
            << absl::StrJoin(files_, ", ",
                             [](std::string* out, const NamedFile& file) {
                               absl::StrAppend(out, "--", file.flag);
                             });
  return absl::OkStatus();
}

void FileWatch::Run(absl::Duration every) {
  while (true) {
    {
      absl::MutexLock lock(&mutex_);
      if (mutex_.AwaitWithTimeout(absl::Condition(&stopping_), every)) return;
    }
    const absl::Status status = Look();
    LOG_IF(ERROR, !status.ok())
        << status.message() << " What was read before stays in force.";
  }
}

}  // namespace lockstep
