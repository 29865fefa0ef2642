#pragma once

#include <absl/status/statusor.h>
#include <absl/time/time.h>

#include <memory>
#include <string>

#include "common/digest.h"
#include "common/security/grpc_credentials.h"
#include "common/security/secure_stub.h"
#include "proto/tokenizer.grpc.pb.h"
#include "tokenizer_service/tokenizer.h"

namespace lockstep {

// The tokenizer service's client. The vocabulary is fetched once, so that
// decoding, which happens for every token of every stream, stays in this
// process; Encode and RenderChat are a call each.
//
//   LOCKSTEP_ASSIGN_OR_RETURN(
//       auto tokenizer, RemoteTokenizer::Connect("localhost:50054", timeout));
//
// Thread-safe, as every Tokenizer. A service that does not answer is
// UNAVAILABLE, naming its address, and is tried again at the next call. One
// that has come back with another vocabulary is, too: its ids would be decoded
// to other texts.
class RemoteTokenizer : public Tokenizer {
 public:
  // Waits up to `timeout` for the service to answer. The sentence of a failure
  // names the address.
  static absl::StatusOr<std::unique_ptr<RemoteTokenizer>> Connect(
      const std::string& address, absl::Duration timeout,
      const ClientTls& tls = {});

  absl::StatusOr<std::vector<uint32_t>> Encode(
      absl::string_view text, bool add_special_tokens) const override;
  absl::StatusOr<std::string> Decode(absl::Span<const uint32_t> ids,
                                     bool skip_special_tokens) const override;
  absl::StatusOr<std::string> RenderChat(
      absl::string_view context_json) const override;

  const TokenizerInfo& info() const override { return info_; }
  const Vocabulary& vocabulary() const override { return vocabulary_; }

 private:
  using Stub = SecureStub<v1::Tokenizer::Stub>;

  RemoteTokenizer(const std::string& address, std::unique_ptr<Stub> stub,
                  TokenizerInfo info, Vocabulary vocabulary);

  const std::string address_;
  const std::unique_ptr<Stub> stub_;
  const TokenizerInfo info_;
  const Vocabulary vocabulary_;
  const Digest digest_;  // of vocabulary_
};

}  // namespace lockstep
