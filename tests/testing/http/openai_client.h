#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/testing/http/raw_connection.h"

namespace lockstep::testing {

// What came of a request to OpenAI's API.
struct OpenAiAnswer {
  int status = 0;
  std::string head;
  nlohmann::json json;                 // a whole answer, or an error
  std::vector<nlohmann::json> events;  // of a stream
  bool done = false;                   // [DONE] was its last event
};

// POSTs `request`, a stream if it says so, and reads all of the answer.
OpenAiAnswer PostJson(int port, const std::string& path,
                      const nlohmann::json& request,
                      const std::string& fields = "");

// The events of a stream as the whole answer that they add up to, without what
// says that it is one: as a client's library does it.
nlohmann::json Accumulate(const std::vector<nlohmann::json>& events);

}  // namespace lockstep::testing
