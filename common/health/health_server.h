#pragma once

#include <absl/status/statusor.h>
#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "common/health.grpc.pb.h"
#include "common/health/health_board.h"

namespace lockstep {

// grpc.health.v1 on a port and a thread of its own, "health": it answers while
// a model loads, and while every other thread of the process hangs.
//
//   HealthBoard board;
//   LOCKSTEP_ASSIGN_OR_RETURN(
//       auto health, HealthServer::Start("127.0.0.1:50053", "health_listen",
//                                        &board, {"lockstep.v1.Worker"}));
//
// "liveness" is SERVING while the board's report is live; "readiness", "" and
// the services by name while it is ready. Other names are NOT_FOUND, or
// SERVICE_UNKNOWN in a Watch. Check's trailers say more: "lockstep-phase" and
// "lockstep-detail". A Watch hears of a change within kLookEvery. At most
// kMostWatches at a time: one more is RESOURCE_EXHAUSTED.
class HealthServer {
 public:
  static constexpr std::chrono::milliseconds kLookEvery{200};
  static constexpr int kMostWatches = 128;

  // `address` is host:port; port 0 takes a free one. `flag` names the option
  // that the sentence of a failure tells to change. `board` must outlive this.
  static absl::StatusOr<std::unique_ptr<HealthServer>> Start(
      const std::string& address, const std::string& flag,
      const HealthBoard* board, std::vector<std::string> service_names);

  // Ends all calls.
  ~HealthServer();
  HealthServer(const HealthServer&) = delete;
  HealthServer& operator=(const HealthServer&) = delete;

  int port() const { return port_; }

 private:
  class Calls;

  HealthServer() = default;

  grpc::health::v1::Health::AsyncService service_;
  std::unique_ptr<grpc::ServerCompletionQueue> queue_;
  std::unique_ptr<grpc::Server> server_;
  int port_ = 0;
  std::unique_ptr<Calls> calls_;  // the thread's
  std::thread thread_;
};

// As --health_listen says: null where `address` is empty, and there is to be
// none.
absl::StatusOr<std::unique_ptr<HealthServer>> StartHealthServer(
    const std::string& address, const HealthBoard* board,
    std::vector<std::string> service_names);

}  // namespace lockstep
