#pragma once

#include <absl/base/thread_annotations.h>
#include <absl/status/status.h>
#include <absl/synchronization/mutex.h>
#include <grpcpp/grpcpp.h>

#include <functional>
#include <string>
#include <thread>

#include "common/digest.h"
#include "common/security/grpc_credentials.h"

namespace lockstep {

// Whether a tokenizer service can be asked, and is the one that it was. A
// thread follows its health, and logs when it goes and when it is back.
//
//   TokenizerWatch watch("localhost:50055", vocabulary.MakeDigest(), tls);
//   watch.Start([&] { server.SetServing(watch.status().ok()); });
//
// Start and Stop are the owner's, once each; status is any thread's. Nothing is
// called after Stop.
class TokenizerWatch {
 public:
  // `vocabulary`: that its ids are decoded with. A service that says that it
  // has another one can not be asked.
  TokenizerWatch(const std::string& address, const Digest& vocabulary,
                 ClientTls tls = {});
  ~TokenizerWatch() { Stop(); }
  TokenizerWatch(const TokenizerWatch&) = delete;
  TokenizerWatch& operator=(const TokenizerWatch&) = delete;

  // `on_change` is called on the watch's thread after status() turned.
  void Start(std::function<void()> on_change);
  void Stop();

  // OK until it is known to be away; UNAVAILABLE names the address.
  absl::Status status() const;

 private:
  void Follow();      // the thread
  void FollowOnce();  // one connection, until it breaks
  absl::Status CheckVocabulary();
  void Set(const absl::Status& status);
  // For the time of a call, so that Stop can end it. False: it is to end
  // already.
  bool SetActive(grpc::ClientContext* context);
  bool IsStopping() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return stopping_;
  }

  const std::string address_;
  const std::string vocabulary_digest_;  // as it is sent
  SecureChannel channel_;
  std::function<void()> on_change_;

  mutable absl::Mutex mutex_;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
  grpc::ClientContext* active_ ABSL_GUARDED_BY(mutex_) = nullptr;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;  // "tokenizer-watch"; joined by Stop
};

}  // namespace lockstep
