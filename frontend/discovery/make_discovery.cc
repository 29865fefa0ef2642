#include "frontend/discovery/make_discovery.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/strip.h>

#include <utility>
#include <variant>

#include "common/flag_check.h"
#include "common/status_macros.h"
#include "frontend/discovery/dns_discovery.h"
#include "frontend/discovery/kubernetes_discovery.h"
#include "frontend/discovery/service_account.h"

namespace lockstep {
namespace {

using Place = std::variant<DnsName, KubernetesService>;

absl::StatusOr<Place> PlaceOf(const std::string& where) {
  absl::string_view rest = where;
  if (absl::ConsumePrefix(&rest, "dns:")) {
    if (const auto name = ParseDnsName(rest)) return *name;
  } else if (absl::ConsumePrefix(&rest, "kubernetes:")) {
    if (const auto service = ParseKubernetesService(rest)) return *service;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("--worker_discovery is \"", where,
                   "\"; it must be dns:name:port with a port of 1 to ",
                   kMaxPort, " or kubernetes:namespace/service."));
}

}  // namespace

absl::Status CheckDiscovery(const DiscoveryOptions& options) {
  return PlaceOf(options.where).status();
}

absl::StatusOr<std::unique_ptr<Discovery>> MakeDiscovery(
    const DiscoveryOptions& options, Discovery::Listener listener) {
  LOCKSTEP_ASSIGN_OR_RETURN(const Place place, PlaceOf(options.where));
  if (const DnsName* name = std::get_if<DnsName>(&place)) {
    return std::make_unique<DnsDiscovery>(
        [name = *name] { return Resolve(name); }, std::move(listener));
  }
  auto server = ApiServerFromEnvironment();
  if (!server.ok()) {
    return absl::FailedPreconditionError(
        absl::StrCat("--worker_discovery is \"", options.where, "\", and ",
                     server.status().message(), "."));
  }
  return std::make_unique<KubernetesDiscovery>(
      KubernetesDiscovery::Options{
          .service = std::get<KubernetesService>(place),
          .server = *std::move(server),
          .account_folder = options.account_folder},
      std::move(listener));
}

}  // namespace lockstep
