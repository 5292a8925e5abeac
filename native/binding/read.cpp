// The calls that change nothing, and open.
#include <limits>

#include "../core/beneath.hpp"
#include "../core/descriptor.hpp"
#include "../core/entry.hpp"
#include "../core/listing.hpp"
#include "../core/xattr.hpp"
#include "arguments.hpp"
#include "errors.hpp"
#include "register.hpp"

namespace agentrewind {
namespace {

constexpr int64_t maxSafeInteger = 9007199254740991;

Napi::Value toBuffer(Napi::Env env, const std::string& bytes) {
  return Napi::Buffer<char>::Copy(env, bytes.data(), bytes.size());
}

Napi::Value jsReadDirectory(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  const int root = arguments.descriptor("root");
  const std::string path = arguments.bytes("path");
  if (!arguments.ok()) return info.Env().Undefined();
  Result<std::string> records = readDirectory(root, path);
  if (!records) return throwError(info.Env(), records.error(), quoted(path));
  return toBuffer(info.Env(), records.value());
}

Napi::Value jsStat(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  const int root = arguments.descriptor("root");
  const std::string path = arguments.bytes("path");
  if (!arguments.ok()) return info.Env().Undefined();
  Result<std::string> record = statEntry(root, path);
  if (record) return toBuffer(info.Env(), record.value());
  if (record.error().code == ENOENT || record.error().code == ENOTDIR) return info.Env().Null();
  return throwError(info.Env(), record.error(), quoted(path));
}

Napi::Value jsReadLink(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  const int root = arguments.descriptor("root");
  const std::string path = arguments.bytes("path");
  if (!arguments.ok()) return info.Env().Undefined();
  Result<std::string> target = readLink(root, path);
  if (!target) return throwError(info.Env(), target.error(), quoted(path));
  return toBuffer(info.Env(), target.value());
}

/** A descriptor of `path` below `root`, found by one of the core's ways. */
template <Result<UniqueFd> (*Find)(int root, std::string_view path, int flags, mode_t mode)>
Napi::Value jsOpen(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  const int root = arguments.descriptor("root");
  const std::string path = arguments.bytes("path");
  const int flags = static_cast<int>(arguments.integer("flags", 0, std::numeric_limits<int32_t>::max()));
  const mode_t mode = arguments.mode("mode");
  if (!arguments.ok()) return info.Env().Undefined();
  Result<UniqueFd> fd = Find(root, path, flags, mode);
  if (!fd) return throwError(info.Env(), fd.error(), quoted(path));
  return Napi::Number::New(info.Env(), fd.value().release());
}

Napi::Value jsGetXattrs(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  const int root = arguments.descriptor("root");
  const std::string path = arguments.bytes("path");
  if (!arguments.ok()) return info.Env().Undefined();
  Result<Xattrs> xattrs = getXattrs(root, path);
  if (!xattrs) return throwError(info.Env(), xattrs.error(), quoted(path));
  Napi::Array pairs = Napi::Array::New(info.Env(), xattrs.value().size());
  uint32_t index = 0;
  for (const auto& [name, value] : xattrs.value()) {
    Napi::HandleScope scope(info.Env());
    Napi::Array pair = Napi::Array::New(info.Env(), 2);
    pair.Set(0u, toBuffer(info.Env(), name));
    pair.Set(1u, toBuffer(info.Env(), value));
    pairs.Set(index++, pair);
  }
  return pairs;
}

Napi::Value jsNextData(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  const int fd = arguments.descriptor("fd");
  const int64_t offset = arguments.integer("offset", 0, maxSafeInteger);
  if (!arguments.ok()) return info.Env().Undefined();
  Result<std::optional<Range>> range = nextData(fd, offset);
  if (!range) return throwError(info.Env(), range.error(), "");
  if (!range.value()) return info.Env().Null();
  Napi::Array pair = Napi::Array::New(info.Env(), 2);
  pair.Set(0u, Napi::Number::New(info.Env(), static_cast<double>(range.value()->start)));
  pair.Set(1u, Napi::Number::New(info.Env(), static_cast<double>(range.value()->end)));
  return pair;
}

}  // namespace

void registerRead(Napi::Env env, Napi::Object exports) {
  exports.Set("readDirectory", Napi::Function::New<jsReadDirectory>(env, "readDirectory"));
  exports.Set("stat", Napi::Function::New<jsStat>(env, "stat"));
  exports.Set("readLink", Napi::Function::New<jsReadLink>(env, "readLink"));
  exports.Set("open", Napi::Function::New<jsOpen<openBeneath>>(env, "open"));
  exports.Set("openInside", Napi::Function::New<jsOpen<openInside>>(env, "openInside"));
  exports.Set("getXattrs", Napi::Function::New<jsGetXattrs>(env, "getXattrs"));
  exports.Set("nextData", Napi::Function::New<jsNextData>(env, "nextData"));
}

}  // namespace agentrewind
