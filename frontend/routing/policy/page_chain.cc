#include "frontend/routing/policy/page_chain.h"

#include <algorithm>

namespace lockstep {

// The finalizer of MurmurHash3 (Appleby), over their sum as a stream of
// SplitMix64 has it.
uint64_t MixHashes(uint64_t a, uint64_t b) {
  uint64_t x = a + 0x9e3779b97f4a7c15 * (b + 1);
  x = (x ^ (x >> 33)) * 0xff51afd7ed558ccd;
  x = (x ^ (x >> 33)) * 0xc4ceb9fe1a85ec53;
  return x ^ (x >> 33);
}

uint64_t HashTokens(uint64_t seed, absl::Span<const uint32_t> token_ids) {
  for (const uint32_t id : token_ids) seed = MixHashes(seed, id);
  return seed;
}

uint64_t HashText(absl::string_view text) {
  uint64_t hash = text.size();
  for (const char c : text) hash = MixHashes(hash, static_cast<uint8_t>(c));
  return hash;
}

std::vector<uint64_t> HashPages(absl::Span<const uint32_t> token_ids) {
  const size_t tokens = std::min<size_t>(token_ids.size(), kMostChainTokens);
  std::vector<uint64_t> hashes(tokens / kChainPageTokens);
  uint64_t hash = 0;
  for (size_t page = 0; page < hashes.size(); ++page) {
    hash = HashTokens(
        hash, token_ids.subspan(page * kChainPageTokens, kChainPageTokens));
    hashes[page] = hash;
  }
  return hashes;
}

}  // namespace lockstep
