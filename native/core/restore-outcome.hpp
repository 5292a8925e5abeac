// How a step of a restore ended.
#pragma once

#include <cstdint>
#include <optional>

#include "result.hpp"

namespace agentrewind {

enum class FailureKind : uint8_t {
  /** The system refused it for this path. */
  refused = 1,
  /** The store's bytes are missing or are not those of their name. */
  damaged = 2,
  /** The path is not any more what it was when it was captured; it was left alone. */
  moved = 3,
  /** Refused because of an attribute that forbids changes. */
  immutable = 4,
  /** New content could not be made. */
  unstaged = 5,
  /** It was done, but for the owner or group, which this process may not give. */
  owner = 6,
};

struct Failure {
  FailureKind kind;
  Errno error;
};

/** Empty when the step was done. */
using Outcome = std::optional<Failure>;

inline Outcome failure(FailureKind kind, Errno error) { return Failure{kind, error}; }

/** Refused, if at all. */
inline Outcome refusal(const Status& status) {
  if (status) return std::nullopt;
  return Failure{FailureKind::refused, status.error()};
}

}  // namespace agentrewind
