#include "frontend/access/open_routes.h"

namespace lockstep {
namespace {

constexpr OpenRoute kOpenRoutes[] = {
    {"/health", "a balancer's probe"},     {"/ready", "a balancer's probe"},
    {"/readiness", "a balancer's probe"},  {"/live", "a supervisor's probe"},
    {"/liveness", "a supervisor's probe"},
};

}  // namespace

absl::Span<const OpenRoute> OpenRoutes() { return kOpenRoutes; }

bool IsOpenRoute(absl::string_view path) {
  for (const OpenRoute& route : kOpenRoutes) {
    if (route.path == path) return true;
  }
  return false;
}

}  // namespace lockstep
