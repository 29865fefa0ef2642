#pragma once

#include <absl/strings/string_view.h>
#include <absl/types/span.h>

#include <cstdint>
#include <vector>

namespace lockstep {

// A prompt in the pages that groups cache.
inline constexpr int kChainPageTokens = 16;
// So much of a prompt decides where it goes.
inline constexpr int kMostChainTokens = 4096;

// A hash for each whole page among the first kMostChainTokens: of it and of all
// pages before it. Prompts share the hashes of the pages they begin with. The
// same in every process.
std::vector<uint64_t> HashPages(absl::Span<const uint32_t> token_ids);

uint64_t HashTokens(uint64_t seed, absl::Span<const uint32_t> token_ids);
uint64_t HashText(absl::string_view text);

// One value of two, each bit of which depends on all of theirs.
uint64_t MixHashes(uint64_t a, uint64_t b);

}  // namespace lockstep
