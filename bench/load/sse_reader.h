#pragma once

#include <absl/strings/string_view.h>

#include <functional>
#include <string>

namespace lockstep::bench {

// Cuts a stream of server-sent events into the data of each, however its bytes
// are cut. What is no line of data is left out.
//
//   SseReader reader([](absl::string_view data) { … });
//   reader.Read("data: one\n\nda");
//   reader.Read("ta: two\n\n");
class SseReader {
 public:
  explicit SseReader(std::function<void(absl::string_view)> on_data)
      : on_data_(std::move(on_data)) {}

  void Read(absl::string_view bytes);

 private:
  const std::function<void(absl::string_view)> on_data_;
  std::string line_;  // its beginning, so far
};

}  // namespace lockstep::bench
