#include "common/security/grpc_credentials.h"

#include <glog/logging.h>
#include <grpc/grpc.h>
#include <grpc/grpc_security.h>

#include <utility>

#include "common/status_macros.h"

namespace lockstep {
namespace {

// gRPC asks for the certificates at each handshake.
class ReloadedServerCredentials : public grpc::ServerCredentials {
 public:
  explicit ReloadedServerCredentials(const TlsIdentity* identity)
      : identity_(identity) {
    const bool asks_clients = !identity->Current()->ca.empty();
    credentials_ = grpc_ssl_server_credentials_create_with_options(
        grpc_ssl_server_credentials_create_options_using_config_fetcher(
            asks_clients
                ? GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY
                : GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE,
            &ReloadedServerCredentials::Fetch, this));
  }
  ~ReloadedServerCredentials() override {
    grpc_server_credentials_release(credentials_);
  }

  void SetAuthMetadataProcessor(
      const std::shared_ptr<grpc::AuthMetadataProcessor>&) override {
    LOG(FATAL) << "keys are looked at elsewhere";
  }

 private:
  int AddPortToServer(const std::string& address,
                      grpc_server* server) override {
    return grpc_server_add_http2_port(server, address.c_str(), credentials_);
  }

  static grpc_ssl_certificate_config_reload_status Fetch(
      void* self, grpc_ssl_server_certificate_config** config) {
    return static_cast<ReloadedServerCredentials*>(self)->Fetch(config);
  }

  grpc_ssl_certificate_config_reload_status Fetch(
      grpc_ssl_server_certificate_config** config) {
    std::shared_ptr<const TlsMaterial> current = identity_->Current();
    absl::MutexLock lock(&mutex_);
    if (current == used_) return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_UNCHANGED;
    const grpc_ssl_pem_key_cert_pair pair = {current->key.c_str(),
                                             current->certificate.c_str()};
    // gRPC wants CAs even where it asks no client for a certificate.
    const std::string& ca =
        current->ca.empty() ? current->certificate : current->ca;
    *config = grpc_ssl_server_certificate_config_create(ca.c_str(), &pair, 1);
    used_ = std::move(current);
    return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_NEW;
  }

  const TlsIdentity* const identity_;
  grpc_server_credentials* credentials_;
  absl::Mutex mutex_;
  std::shared_ptr<const TlsMaterial> used_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

std::shared_ptr<grpc::ServerCredentials> MakeServerCredentials(
    const TlsIdentity* identity) {
  if (identity == nullptr) return nullptr;
  return std::make_shared<ReloadedServerCredentials>(identity);
}

absl::StatusOr<ClientTls> StartClientTls(const TlsFiles& files,
                                         const std::string& server_name) {
  if (files.ca.path.empty()) return ClientTls();
  LOCKSTEP_ASSIGN_OR_RETURN(std::unique_ptr<TlsIdentity> identity,
                            TlsIdentity::Start(files));
  return ClientTls{std::move(identity), server_name};
}

SecureChannel::SecureChannel(const std::string& address,
                             const grpc::ChannelArguments& arguments,
                             ClientTls tls)
    : address_(address), arguments_(arguments), tls_(std::move(tls)) {
  if (!tls_.server_name.empty()) {
    arguments_.SetSslTargetNameOverride(tls_.server_name);
  }
}

std::shared_ptr<grpc::Channel> SecureChannel::Get() {
  std::shared_ptr<const TlsMaterial> current =
      tls_.identity == nullptr ? nullptr : tls_.identity->Current();
  absl::MutexLock lock(&mutex_);
  if (channel_ != nullptr && current == used_) return channel_;
  used_ = std::move(current);
  const auto credentials =
      used_ == nullptr
          ? grpc::InsecureChannelCredentials()
          : grpc::SslCredentials({.pem_root_certs = used_->ca,
                                  .pem_private_key = used_->key,
                                  .pem_cert_chain = used_->certificate});
  channel_ = grpc::CreateCustomChannel(address_, credentials, arguments_);
  return channel_;
}

}  // namespace lockstep
