#pragma once

namespace lockstep {

// Of all programs that are built from this tree.
inline constexpr char kVersion[] = "0.1.0";

}  // namespace lockstep
