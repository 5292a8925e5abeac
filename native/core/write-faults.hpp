// Lets a test fail the Nth change of a file that the addon's threads make, as a full or broken disk would; the TypeScript side is src/write-faults.ts.
#pragma once

#include <cerrno>
#include <cstddef>

namespace agentrewind {

enum class WriteFault { none, full, broken, shortened };

/** Fails the `nth` change from now on. Returns whether what was armed before has failed something. Nothing may be at work meanwhile. */
bool armWriteFault(WriteFault kind, long nth);

/** 0, or the errno with which the change is to fail. `size`, of a write, may come back halved; the next change then finds the disk full. */
int beforeChange(size_t* size = nullptr);

/** Makes a system call that changes a file: `call()` returns -1 and sets errno when it fails. */
template <typename Call>
auto changing(Call call) -> decltype(call()) {
  if (const int code = beforeChange()) {
    errno = code;
    return -1;
  }
  return call();
}

/** The same of a write of `size` bytes: `call(size)`. */
template <typename Call>
auto writing(size_t size, Call call) -> decltype(call(size)) {
  if (const int code = beforeChange(&size)) {
    errno = code;
    return -1;
  }
  return call(size);
}

}  // namespace agentrewind
