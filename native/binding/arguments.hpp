// Reads a call's arguments one after the other; the first that does not fit throws a TypeError.
#pragma once

#include <napi.h>

#include <cstdint>
#include <optional>
#include <string>

namespace agentrewind {

class Arguments {
 public:
  explicit Arguments(const Napi::CallbackInfo& info) : info_(info) {}

  /** A whole number from `low` to `high`. */
  int64_t integer(const char* name, int64_t low, int64_t high);
  int descriptor(const char* name);
  mode_t mode(const char* name);
  uint32_t unsigned32(const char* name);
  /** A copy, so that nobody can change the bytes between a check and their use. */
  std::string bytes(const char* name);
  Napi::Function function(const char* name);
  int64_t nanoseconds(const char* name);
  /** null: no value. */
  std::optional<int64_t> optionalNanoseconds(const char* name);

  /** Once false, a TypeError is pending and the values read are meaningless. */
  bool ok() const { return ok_; }

 private:
  Napi::Value next();
  void fail(const char* name, const char* expected);

  const Napi::CallbackInfo& info_;
  size_t index_ = 0;
  bool ok_ = true;
};

}  // namespace agentrewind
