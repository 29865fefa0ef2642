#pragma once

#include <string>

#include "frontend/http/request_reader.h"
#include "frontend/http/router.h"

namespace lockstep::http {

// What can be said of a request by its header alone, before its body is read.
//
//   const Admission admission = Admit(reader, router);
//   if (admission.refusal.status != 0) …refuse…
//   else if (admission.route == nullptr) …answer OPTIONS…
struct Admission {
  Refusal refusal;
  const Route* route = nullptr;
  std::string wildcard;
  std::string allow;       // where OPTIONS is answered, or with a 405
  std::string request_id;  // always set, and fit for a log
};

// REQUIRES: reader.has_header().
Admission Admit(const RequestReader& reader, const Router& router);

}  // namespace lockstep::http
