#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <utility>

// Early return for absl::Status, until the system's Abseil has its own.
//
//   LOCKSTEP_RETURN_IF_ERROR(Load(path));
//   LOCKSTEP_ASSIGN_OR_RETURN(auto file, MappedFile::Open(path));

#define LOCKSTEP_RETURN_IF_ERROR(expression)                                  \
  do {                                                                        \
    if (absl::Status lockstep_status = (expression); !lockstep_status.ok()) { \
      return lockstep_status;                                                 \
    }                                                                         \
  } while (false)

#define LOCKSTEP_CONCAT_INNER(a, b) a##b
#define LOCKSTEP_CONCAT(a, b) LOCKSTEP_CONCAT_INNER(a, b)

#define LOCKSTEP_ASSIGN_OR_RETURN(declaration, expression)                   \
  LOCKSTEP_ASSIGN_OR_RETURN_IMPL(LOCKSTEP_CONCAT(lockstep_value_, __LINE__), \
                                 declaration, expression)

#define LOCKSTEP_ASSIGN_OR_RETURN_IMPL(value, declaration, expression) \
  auto value = (expression);                                           \
  if (!value.ok()) return std::move(value).status();                   \
  declaration = *std::move(value)
