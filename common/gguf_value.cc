#include "common/gguf_value.h"

#include <absl/strings/str_cat.h>

#include <iterator>
#include <limits>
#include <type_traits>
#include <utility>

#include "common/status_macros.h"

namespace lockstep {
namespace {

// ggml's docs/gguf.md, enum gguf_metadata_value_type.
enum class Type : uint32_t {
  kUint8,
  kInt8,
  kUint16,
  kInt16,
  kUint32,
  kInt32,
  kFloat32,
  kBool,
  kString,
  kArray,
  kUint64,
  kInt64,
  kFloat64,
};

// What a number of type T is kept as.
template <typename T>
using Wide = std::conditional_t<
    std::is_floating_point_v<T>, double,
    std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>>;

template <typename T>
absl::StatusOr<GgufValue> ReadNumber(ByteCursor& cursor,
                                     absl::string_view what) {
  LOCKSTEP_ASSIGN_OR_RETURN(const T value, cursor.Read<T>(what));
  return GgufValue(Wide<T>{value});
}

// An array of T, kept as a vector of Item.
template <typename T, typename Item>
absl::StatusOr<GgufValue> ReadItems(ByteCursor& cursor,
                                    absl::string_view what) {
  LOCKSTEP_ASSIGN_OR_RETURN(const uint64_t count,
                            cursor.ReadCount(what, sizeof(T)));
  std::vector<Item> items;
  items.reserve(count);
  for (uint64_t i = 0; i < count; ++i) {
    LOCKSTEP_ASSIGN_OR_RETURN(const T value, cursor.Read<T>(what));
    if constexpr (std::is_same_v<T, uint64_t>) {
      if (value > uint64_t{std::numeric_limits<int64_t>::max()}) {
        return cursor.Error(absl::StrCat(what, " holds ", value,
                                         ", more than a signed number can."));
      }
    }
    items.push_back(static_cast<Item>(value));
  }
  return GgufValue(std::move(items));
}

absl::StatusOr<GgufValue> ReadStrings(ByteCursor& cursor,
                                      absl::string_view what) {
  LOCKSTEP_ASSIGN_OR_RETURN(const uint64_t count,
                            cursor.ReadCount(what, sizeof(uint64_t)));
  GgufStrings strings;
  strings.reserve(count);
  for (uint64_t i = 0; i < count; ++i) {
    LOCKSTEP_ASSIGN_OR_RETURN(const absl::string_view text,
                              cursor.ReadString(what));
    strings.push_back(text);
  }
  return GgufValue(std::move(strings));
}

absl::StatusOr<GgufValue> ReadArray(ByteCursor& cursor,
                                    absl::string_view what) {
  LOCKSTEP_ASSIGN_OR_RETURN(const uint32_t type, cursor.Read<uint32_t>(what));
  switch (static_cast<Type>(type)) {
    case Type::kUint8:
      return ReadItems<uint8_t, int64_t>(cursor, what);
    case Type::kInt8:
      return ReadItems<int8_t, int64_t>(cursor, what);
    case Type::kUint16:
      return ReadItems<uint16_t, int64_t>(cursor, what);
    case Type::kInt16:
      return ReadItems<int16_t, int64_t>(cursor, what);
    case Type::kUint32:
      return ReadItems<uint32_t, int64_t>(cursor, what);
    case Type::kInt32:
      return ReadItems<int32_t, int64_t>(cursor, what);
    case Type::kUint64:
      return ReadItems<uint64_t, int64_t>(cursor, what);
    case Type::kInt64:
      return ReadItems<int64_t, int64_t>(cursor, what);
    case Type::kFloat32:
      return ReadItems<float, double>(cursor, what);
    case Type::kFloat64:
      return ReadItems<double, double>(cursor, what);
    case Type::kBool:
      return ReadItems<uint8_t, bool>(cursor, what);
    case Type::kString:
      return ReadStrings(cursor, what);
    case Type::kArray:
      break;
  }
  return cursor.Error(absl::StrCat(what, " is an array of type ", type,
                                   ", which is not supported."));
}

}  // namespace

absl::StatusOr<GgufValue> ReadGgufValue(ByteCursor& cursor,
                                        absl::string_view what) {
  LOCKSTEP_ASSIGN_OR_RETURN(const uint32_t type, cursor.Read<uint32_t>(what));
  switch (static_cast<Type>(type)) {
    case Type::kUint8:
      return ReadNumber<uint8_t>(cursor, what);
    case Type::kInt8:
      return ReadNumber<int8_t>(cursor, what);
    case Type::kUint16:
      return ReadNumber<uint16_t>(cursor, what);
    case Type::kInt16:
      return ReadNumber<int16_t>(cursor, what);
    case Type::kUint32:
      return ReadNumber<uint32_t>(cursor, what);
    case Type::kInt32:
      return ReadNumber<int32_t>(cursor, what);
    case Type::kUint64:
      return ReadNumber<uint64_t>(cursor, what);
    case Type::kInt64:
      return ReadNumber<int64_t>(cursor, what);
    case Type::kFloat32:
      return ReadNumber<float>(cursor, what);
    case Type::kFloat64:
      return ReadNumber<double>(cursor, what);
    case Type::kBool: {
      LOCKSTEP_ASSIGN_OR_RETURN(const uint8_t value,
                                cursor.Read<uint8_t>(what));
      return GgufValue(value != 0);
    }
    case Type::kString: {
      LOCKSTEP_ASSIGN_OR_RETURN(const absl::string_view text,
                                cursor.ReadString(what));
      return GgufValue(text);
    }
    case Type::kArray:
      return ReadArray(cursor, what);
  }
  return cursor.Error(
      absl::StrCat(what, " is of type ", type, ", which is not known."));
}

const char* GgufTypeName(const GgufValue& value) {
  constexpr const char* kNames[] = {"a bool",
                                    "an unsigned integer",
                                    "a signed integer",
                                    "a float",
                                    "a string",
                                    "an array of strings",
                                    "an array of integers",
                                    "an array of floats",
                                    "an array of bools"};
  static_assert(std::size(kNames) == std::variant_size_v<GgufValue>);
  return kNames[value.index()];
}

}  // namespace lockstep
