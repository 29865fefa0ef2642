#include "tokenizer_service/caching/segment_cache.h"

#include <utility>

namespace lockstep {
namespace {

// Of the nodes of list and map, about.
constexpr size_t kBytesBeside = 160;
constexpr size_t kLeastSegments = 8;

}  // namespace

size_t SegmentCache::Segment::bytes() const {
  return text.size() + ids.size() * sizeof(ids[0]) + kBytesBeside;
}

bool SegmentCache::Append(absl::string_view text, std::vector<uint32_t>* ids) {
  absl::MutexLock lock(&mutex_);
  const auto found = by_text_.find(text);
  if (found == by_text_.end()) return false;
  segments_.splice(segments_.begin(), segments_, found->second);
  const std::vector<uint32_t>& known = found->second->ids;
  ids->insert(ids->end(), known.begin(), known.end());
  return true;
}

void SegmentCache::Insert(absl::string_view text,
                          const std::vector<uint32_t>& ids) {
  Segment segment{std::string(text), ids};
  const size_t bytes = segment.bytes();
  if (bytes > max_bytes_ / kLeastSegments) return;
  absl::MutexLock lock(&mutex_);
  if (by_text_.contains(text)) return;  // another thread was first
  segments_.push_front(std::move(segment));
  by_text_.emplace(segments_.front().text, segments_.begin());
  bytes_ += bytes;
  while (bytes_ > max_bytes_) {
    bytes_ -= segments_.back().bytes();
    by_text_.erase(segments_.back().text);
    segments_.pop_back();
  }
}

size_t SegmentCache::bytes() const {
  absl::MutexLock lock(&mutex_);
  return bytes_;
}

}  // namespace lockstep
