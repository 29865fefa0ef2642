// Bytes as a connection could bring them: whatever they are, and however they
// are cut, requests are read or refused within the limits, and the cut makes no
// difference.

#include <absl/strings/string_view.h>

#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "frontend/http/request_gate.h"
#include "frontend/http/request_reader.h"
#include "frontend/http/router.h"

namespace {

using lockstep::http::Admission;
using lockstep::http::Admit;
using lockstep::http::Request;
using lockstep::http::RequestLimits;
using lockstep::http::RequestReader;
using lockstep::http::Router;

constexpr RequestLimits kLimits = {/*header_bytes=*/512, /*fields=*/10,
                                   /*body_bytes=*/256};

void Require(bool holds) {
  if (!holds) std::abort();
}

const Router& TestRouter() {
  static const Router* const router =
      new Router({{"GET", "/v1/models/*", nullptr},
                  {"POST", "/run", nullptr, "application/json"}});
  return *router;
}

// What the requests of `bytes` are, and how they end.
std::vector<std::string> Read(absl::string_view bytes, size_t piece) {
  std::vector<std::string> seen;
  std::string input;
  RequestReader reader(kLimits);
  while (!bytes.empty()) {
    input.append(bytes.data(), std::min(piece, bytes.size()));
    bytes.remove_prefix(std::min(piece, bytes.size()));
    while (!input.empty()) {
      const size_t used = reader.Put(input);
      Require(used <= input.size());
      input.erase(0, used);
      if (reader.refusal().status != 0) {
        seen.push_back(std::to_string(reader.refusal().status));
        return seen;
      }
      if (reader.has_header()) {
        const Admission admission = Admit(reader, TestRouter());
        Require(!admission.request_id.empty());
        Require(admission.refusal.status != 0 || admission.route != nullptr ||
                !admission.allow.empty());
      }
      if (reader.is_complete()) {
        const Request request = reader.TakeRequest();
        Require(request.body.size() <= kLimits.body_bytes);
        Require(request.fields.size() <= kLimits.fields);
        seen.push_back(request.method + " " + request.path + " " +
                       request.body);
        reader = RequestReader(kLimits);
      } else if (used == 0) {
        break;
      }
    }
    // What is kept until more comes is bounded.
    Require(input.size() <= kLimits.header_bytes + piece);
  }
  return seen;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto whole = Read(bytes, size + 1);
  const auto cut = Read(bytes, 1);
  // A refusal can come earlier where a part is too long; never another request.
  const size_t common = std::min(whole.size(), cut.size());
  for (size_t i = 0; i + 1 < common; ++i) Require(whole[i] == cut[i]);
  return 0;
}
