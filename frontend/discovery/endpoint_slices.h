#pragma once

#include <absl/status/status.h>
#include <absl/strings/string_view.h>

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace lockstep {

// The EndpointSlices of a Service, as a list and then the events of a watch
// tell of them: Kubernetes API, discovery.k8s.io/v1, and "Efficient detection
// of changes" of its concepts.
//
//   EndpointSlices slices;
//   LOCKSTEP_RETURN_IF_ERROR(slices.TakeList(body));
//   …watch from slices.version()…
//   LOCKSTEP_RETURN_IF_ERROR(slices.TakeEvent(line));
//   groups.SetAddresses(slices.Addresses());
//
// An endpoint counts that is ready and not terminating, whatever the Service
// publishes, at its first address and the port called grpc, or the only one. A
// Pod counts once, also where it has addresses of both families, and where it
// is in two slices while it moves from one to the other.
//
// What is given may be anything; an error leaves all as it was. Not
// thread-safe.
class EndpointSlices {
 public:
  // In place of all that was known. INVALID_ARGUMENT: it is no such list;
  // FAILED_PRECONDITION: the ports of a slice are not to be told apart.
  absl::Status TakeList(absl::string_view json);

  // The same errors, or the server's that ended the watch (FromApiStatus):
  // OUT_OF_RANGE, where the version that it began with is forgotten.
  absl::Status TakeEvent(absl::string_view json);

  // What a watch goes on from; fit for a URL, empty before the first list.
  const std::string& version() const { return version_; }

  // "address:port" of each leader, in order and without doubles.
  std::vector<std::string> Addresses() const;

 private:
  // Of those that count: the Pod's uid, or the address of one that is no Pod's.
  using Addressed = std::map<std::string, std::string>;
  struct Slice {
    bool is_ipv6 = false;
    Addressed endpoints;
  };
  using Named = std::map<std::string, Slice>;

  static absl::Status Parse(const nlohmann::json& object, Slice* slice);

  std::string version_;
  Named slices_;
};

}  // namespace lockstep
