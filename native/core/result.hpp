// The outcome of a core call: a value, or the errno and the name of the system call that set it.
#pragma once

#include <cerrno>
#include <utility>
#include <variant>

namespace agentrewind {

struct Errno {
  int code;
  const char* syscall;
};

/** Must be called before anything else can overwrite errno. */
inline Errno lastError(const char* syscall) { return Errno{errno, syscall}; }

template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Errno error) : state_(std::in_place_index<1>, error) {}

  explicit operator bool() const { return state_.index() == 0; }
  /** Only after the result tested true. */
  T& value() { return *std::get_if<0>(&state_); }
  /** Only after the result tested false. */
  const Errno& error() const { return *std::get_if<1>(&state_); }

 private:
  std::variant<T, Errno> state_;
};

struct Done {};
using Status = Result<Done>;

/** Turns the 0 or -1 of a system call into a status. */
inline Status check(long returned, const char* syscall) {
  if (returned < 0) return lastError(syscall);
  return Done{};
}

}  // namespace agentrewind
