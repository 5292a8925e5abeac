// Checks and conversions from JavaScript values.
#include "arguments.hpp"

#include <cmath>
#include <limits>

namespace agentrewind {

Napi::Value Arguments::next() {
  const size_t index = index_++;
  return index < info_.Length() ? info_[index] : info_.Env().Undefined();
}

void Arguments::fail(const char* name, const char* expected) {
  if (!ok_) return;
  ok_ = false;
  Napi::TypeError::New(info_.Env(), std::string("The argument \"") + name + "\" must be " + expected)
      .ThrowAsJavaScriptException();
}

int64_t Arguments::integer(const char* name, int64_t low, int64_t high) {
  const Napi::Value value = next();
  if (!ok_) return low;
  const double number = value.IsNumber() ? value.As<Napi::Number>().DoubleValue() : std::nan("");
  if (!(number >= static_cast<double>(low) && number <= static_cast<double>(high)) || std::floor(number) != number) {
    const std::string expected = "a whole number from " + std::to_string(low) + " to " + std::to_string(high);
    fail(name, expected.c_str());
    return low;
  }
  return static_cast<int64_t>(number);
}

int Arguments::descriptor(const char* name) {
  return static_cast<int>(integer(name, 0, std::numeric_limits<int32_t>::max()));
}

Napi::Function Arguments::function(const char* name) {
  const Napi::Value value = next();
  if (!ok_ || value.IsFunction()) return value.As<Napi::Function>();
  fail(name, "a function");
  return Napi::Function();
}

mode_t Arguments::mode(const char* name) { return static_cast<mode_t>(integer(name, 0, 07777)); }

uint32_t Arguments::unsigned32(const char* name) {
  return static_cast<uint32_t>(integer(name, 0, std::numeric_limits<uint32_t>::max()));
}

std::string Arguments::bytes(const char* name) {
  const Napi::Value value = next();
  if (!ok_) return {};
  if (value.IsTypedArray() && value.As<Napi::TypedArray>().TypedArrayType() == napi_uint8_array) {
    const Napi::Uint8Array array = value.As<Napi::Uint8Array>();
    // A detached array has length 0, which must not pass for the empty path.
    if (!array.ArrayBuffer().IsDetached()) {
      if (array.ByteLength() == 0) return {};
      return std::string(reinterpret_cast<const char*>(array.Data()), array.ByteLength());
    }
  }
  fail(name, "a Buffer");
  return {};
}

int64_t Arguments::nanoseconds(const char* name) {
  const Napi::Value value = next();
  if (!ok_) return 0;
  if (value.IsBigInt()) {
    bool lossless = false;
    const int64_t number = value.As<Napi::BigInt>().Int64Value(&lossless);
    if (lossless) return number;
  }
  fail(name, "a bigint of at most 64 bits");
  return 0;
}

std::optional<int64_t> Arguments::optionalNanoseconds(const char* name) {
  if (ok_ && index_ < info_.Length() && info_[index_].IsNull()) {
    index_ += 1;
    return std::nullopt;
  }
  return nanoseconds(name);
}

}  // namespace agentrewind
