#include "worker/device/device_layout.h"

#include <utility>

#include "common/status_macros.h"

namespace lockstep {

void DeviceLayout::AddBytes(const std::string& what, size_t bytes,
                            std::function<void(CudaApi::Address)> set) {
  constexpr size_t kAlignment = DeviceArena::kAlignment;
  pieces_.push_back({what, bytes, std::move(set)});
  bytes_ += (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

absl::Status DeviceLayout::PlaceIn(DeviceArena* arena) const {
  for (const Piece& piece : pieces_) {
    LOCKSTEP_ASSIGN_OR_RETURN(const CudaApi::Address address,
                              arena->Take(piece.bytes, piece.what));
    piece.set(address);
  }
  return absl::OkStatus();
}

}  // namespace lockstep
