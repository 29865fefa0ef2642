#pragma once

#include <absl/status/status.h>

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "worker/device/device_arena.h"

namespace lockstep {

// The pieces of an arena: first how much they take, then where each lies.
//
//   DeviceLayout layout;
//   layout.Add("queries", num_queries, &queries);
//   LOCKSTEP_ASSIGN_OR_RETURN(
//       auto arena, DeviceArena::Create(device, "activations",
//       layout.bytes()));
//   LOCKSTEP_RETURN_IF_ERROR(layout.PlaceIn(arena.get()));
//
// One thread.
class DeviceLayout {
 public:
  // `where` gets the address once there is one, and must be there until then.
  template <typename T>
  void Add(const std::string& what, size_t count, T** where) {
    AddBytes(what, count * sizeof(T), [where](CudaApi::Address address) {
      *where = reinterpret_cast<T*>(address);
    });
  }

  // Of all pieces, each as an arena aligns it.
  size_t bytes() const { return bytes_; }

  // In the order in which they were added.
  absl::Status PlaceIn(DeviceArena* arena) const;

 private:
  struct Piece {
    std::string what;
    size_t bytes;
    std::function<void(CudaApi::Address)> set;
  };

  void AddBytes(const std::string& what, size_t bytes,
                std::function<void(CudaApi::Address)> set);

  std::vector<Piece> pieces_;
  size_t bytes_ = 0;
};

}  // namespace lockstep
