#pragma once

#include <absl/base/thread_annotations.h>
#include <absl/status/statusor.h>
#include <absl/synchronization/mutex.h>
#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>

#include "common/security/tls_identity.h"

namespace lockstep {

// Of a gRPC server that shows `identity`'s certificate, TLS 1.2 or later. With
// a CA every client must show a certificate of it. Each handshake uses what is
// current; that what can not be used is never current is the identity's doing,
// which gRPC's own watcher of files does not promise.
//
// Null for null: a server without TLS. `identity`, and the result, must outlive
// the server: see GrpcServer::Start.
std::shared_ptr<grpc::ServerCredentials> MakeServerCredentials(
    const TlsIdentity* identity);

// How a client of ours speaks TLS.
struct ClientTls {
  // Whose `ca` servers must have a certificate of. Null: no TLS.
  std::shared_ptr<const TlsIdentity> identity = nullptr;
  // The name their certificates must have; empty: that of the address.
  std::string server_name = {};
};

// Of `files`; without TLS where these name no CA. The error is a file's that is
// no good.
absl::StatusOr<ClientTls> StartClientTls(const TlsFiles& files,
                                         const std::string& server_name);

// A channel that is made anew after its certificates have changed: calls that
// begin afterwards use the new one, those before end on the old.
//
//   SecureChannel channel(address, ChannelArguments(), tls);
//   auto stub = v1::Worker::NewStub(channel.Get());
//
// Any thread. A call that has begun keeps its channel.
class SecureChannel {
 public:
  SecureChannel(const std::string& address,
                const grpc::ChannelArguments& arguments, ClientTls tls);

  // The same until the certificates change.
  std::shared_ptr<grpc::Channel> Get();

 private:
  const std::string address_;
  grpc::ChannelArguments arguments_;
  const ClientTls tls_;

  absl::Mutex mutex_;
  std::shared_ptr<const TlsMaterial> used_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<grpc::Channel> channel_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace lockstep
