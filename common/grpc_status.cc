#include "common/grpc_status.h"

#include <absl/strings/cord.h>
#include <absl/strings/match.h>

#include <string>

#include "common/error_reason.h"
#include "common/rpc_status.pb.h"

namespace lockstep {
namespace {

// Other payloads do not leave the process.
constexpr char kTypeUrls[] = "type.googleapis.com/";
// Trailers have room for 8 KiB in all, and the message is in one already.
constexpr size_t kMaxRepeatedMessage = 1024;

}  // namespace

grpc::Status ToGrpc(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  google::rpc::Status details;
  details.set_code(static_cast<int>(status.code()));
  if (status.message().size() <= kMaxRepeatedMessage) {
    details.set_message(std::string(status.message()));
  }
  WithDefaultReason(status).ForEachPayload(
      [&details](absl::string_view url, const absl::Cord& payload) {
        if (!absl::StartsWith(url, kTypeUrls)) return;
        google::protobuf::Any& detail = *details.add_details();
        detail.set_type_url(std::string(url));
        detail.set_value(std::string(payload));
      });
  return grpc::Status(
      static_cast<grpc::StatusCode>(status.code()),
      std::string(status.message()),
      details.details().empty() ? "" : details.SerializeAsString());
}

absl::Status FromGrpc(const grpc::Status& status) {
  absl::Status result(static_cast<absl::StatusCode>(status.error_code()),
                      status.error_message());
  google::rpc::Status details;
  if (!details.ParseFromString(status.error_details())) return result;
  for (const google::protobuf::Any& detail : details.details()) {
    if (!absl::StartsWith(detail.type_url(), kTypeUrls)) continue;
    result.SetPayload(detail.type_url(), absl::Cord(detail.value()));
  }
  return result;
}

}  // namespace lockstep
