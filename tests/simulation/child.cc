#include "tests/simulation/child.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/string_view.h>
#include <glog/logging.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <utility>

namespace lockstep::testing {
namespace {

constexpr size_t kMostWords = 600;

uint64_t* NewSharedWord() {
  void* const word = mmap(nullptr, sizeof(uint64_t), PROT_READ | PROT_WRITE,
                          MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  PCHECK(word != MAP_FAILED);
  return static_cast<uint64_t*>(word);
}

void WriteAll(int file, absl::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = write(file, bytes.data(), bytes.size());
    if (written < 0) _exit(3);
    bytes.remove_prefix(written);
  }
}

std::string ReadAll(int file) {
  std::string bytes;
  char buffer[4096];
  ssize_t count;
  while ((count = read(file, buffer, sizeof(buffer))) > 0) {
    bytes.append(buffer, count);
  }
  return bytes;
}

}  // namespace

Child::Child(const std::function<std::string(uint64_t* progress)>& work)
    : progress_(NewSharedWord()), words_(memfd_create("stderr", 0)) {
  PCHECK(words_ >= 0);
  int ends[2];
  PCHECK(pipe(ends) == 0);
  process_ = fork();
  PCHECK(process_ >= 0);
  if (process_ == 0) {
    dup2(words_, STDERR_FILENO);
    // An exception must not be caught by what called us in the parent.
    [&]() noexcept { WriteAll(ends[1], work(progress_)); }();
    _exit(0);
  }
  close(ends[1]);
  result_ = ends[0];
}

Child::~Child() {
  if (process_ >= 0) (void)Join();
  munmap(progress_, sizeof(*progress_));
}

absl::StatusOr<std::string> Child::Join() {
  std::string result = ReadAll(result_);
  close(result_);
  int status = 0;
  PCHECK(waitpid(process_, &status, 0) == process_);
  process_ = -1;
  lseek(words_, 0, SEEK_SET);
  const std::string words = ReadAll(words_);
  close(words_);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return result;
  return absl::InternalError(
      absl::StrCat("it crashed: ", words.substr(0, kMostWords)));
}

}  // namespace lockstep::testing
