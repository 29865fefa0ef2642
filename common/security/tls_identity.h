#pragma once

#include <absl/base/thread_annotations.h>
#include <absl/status/statusor.h>
#include <absl/synchronization/mutex.h>
#include <absl/time/time.h>

#include <memory>
#include <string>

#include "common/security/file_watch.h"

namespace lockstep {

// The files of one end of TLS connections, all of them PEM. An empty path:
// none.
struct TlsFiles {
  NamedFile certificate = {};  // ours; the chain's others behind it
  NamedFile key = {};          // its private key, not encrypted
  NamedFile ca = {};           // whose certificates the other end must have
};

// What they hold.
struct TlsMaterial {
  std::string certificate;  // empty: none; then so is key
  std::string key;
  std::string ca;  // empty: none
};

// What one end of TLS connections shows and trusts, read again when its files
// change. Handshakes that begin afterwards use the new; connections stay.
//
//   LOCKSTEP_ASSIGN_OR_RETURN(auto identity, TlsIdentity::Start(files));
//   const std::shared_ptr<const TlsMaterial> now = identity->Current();
//
// Any thread. New files that do not fit together leave the old in force, so
// that two files need not be replaced at once. Good is: the certificate has its
// key and is valid now, the CA's file holds certificates.
class TlsIdentity {
 public:
  // At least one path is set, and `certificate` and `key` both or none. The
  // error is one sentence that names the flag.
  static absl::StatusOr<std::unique_ptr<TlsIdentity>> Start(
      const TlsFiles& files, absl::Duration every = absl::Seconds(1));

  // Another object after each change.
  std::shared_ptr<const TlsMaterial> Current() const;

 private:
  explicit TlsIdentity(const TlsFiles& files) : files_(files) {}
  absl::Status Take(const FileWatch::Contents& contents);

  const TlsFiles files_;
  mutable absl::Mutex mutex_;
  std::shared_ptr<const TlsMaterial> current_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<FileWatch> watch_;  // calls Take, so it goes first
};

}  // namespace lockstep
