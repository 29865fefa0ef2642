#include "third_party/text/tokens_digest.h"

namespace lockstep {

void TokensDigest::Add(absl::string_view bytes, bool is_token) {
  if (is_token) {
    builder_.Add(id_);
    builder_.Add(bytes);
  }
  ++id_;
}

}  // namespace lockstep
