#pragma once

#include <absl/base/thread_annotations.h>
#include <absl/strings/string_view.h>
#include <absl/synchronization/mutex.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tests/testing/hub/http_listener.h"

namespace lockstep::testing {

// A hub on 127.0.0.1, as far as models are read from one: the list of a
// repository's files, a file or what it is. Large files are at another port, to
// which it redirects, as hubs keep them at other hosts.
//
//   FakeHub hub;
//   hub.SetModel("owner/name", {.files = {{"config.json", {"{}"}}}});
//   settings.endpoint = hub.endpoint();
//
// Any thread.
class FakeHub {
 public:
  struct File {
    std::string content;
    bool large = false;  // kept by git-lfs, at the other port
    // What is said of it where that is not the truth.
    std::string etag = {};
    int64_t size = -1;
  };

  struct Model {
    std::string commit = std::string(40, 'a');
    std::vector<std::string> revisions = {"main"};
    std::map<std::string, File> files = {};
    // Set: who has it not gets 401, or 403 with another one.
    std::string token = {};
    bool gated = false;  // then strangers are told that it is there
  };

  struct Seen : HttpListener::Request {
    bool elsewhere = false;  // at the other port
  };

  FakeHub();

  std::string endpoint() const { return hub_.url(); }

  void SetModel(const std::string& repo, Model model);

  // The next `times` bodies of files end after so many bytes, and their
  // connections with them.
  void CutBodies(int64_t after_bytes, int times);
  // The next `times` requests are answered so, after `passing` others.
  void RefuseRequests(int status, int times, int passing = 0);
  // Whether a part of a file can be asked for; true at first.
  void SetTakesRanges(bool takes_ranges);

  std::vector<Seen> seen() const;
  // How often the body of a file was asked for, from its beginning or not.
  int NumReads(absl::string_view name) const;

 private:
  using Request = HttpListener::Request;
  using Answer = HttpListener::Answer;

  Answer AtHub(const Request& request);
  Answer Elsewhere(const Request& request);
  Answer Listing(const std::string& repo, const Model& model,
                 const std::string& revision) const;
  Answer Resolve(const Request& request, const Model& model,
                 absl::string_view revision_and_name)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Answer Body(const Request& request, const File& file)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable absl::Mutex mutex_;
  std::map<std::string, Model> models_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, File> elsewhere_ ABSL_GUARDED_BY(mutex_);  // by target
  std::vector<Seen> seen_ ABSL_GUARDED_BY(mutex_);
  int64_t cut_after_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  int cuts_ ABSL_GUARDED_BY(mutex_) = 0;
  int refused_status_ ABSL_GUARDED_BY(mutex_) = 0;
  int refusals_ ABSL_GUARDED_BY(mutex_) = 0;
  int passing_ ABSL_GUARDED_BY(mutex_) = 0;  // before these
  bool takes_ranges_ ABSL_GUARDED_BY(mutex_) = true;

  HttpListener other_;  // the threads of both use what is above
  HttpListener hub_;
};

}  // namespace lockstep::testing
