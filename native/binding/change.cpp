// The calls that change a tree, syncFileSystem and punchHole.
#include <limits>

#include "../core/change-inode.hpp"
#include "../core/change-name.hpp"
#include "../core/descriptor.hpp"
#include "../core/xattr.hpp"
#include "../core/write-faults.hpp"
#include "arguments.hpp"
#include "errors.hpp"
#include "register.hpp"

namespace agentrewind {
namespace {

Napi::Value finish(Napi::Env env, const Status& status, const std::string& subject) {
  if (!status) return throwError(env, status.error(), subject);
  return env.Undefined();
}

Napi::Value jsMakeDirectory(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  const int root = arguments.descriptor("root");
  const std::string path = arguments.bytes("path");
  const mode_t mode = arguments.mode("mode");
  if (!arguments.ok()) return info.Env().Undefined();
  return finish(info.Env(), makeDirectory(root, path, mode), quoted(path));
}

Napi::Value jsMakeSymlink(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  const int root = arguments.descriptor("root");
  const std::string target = arguments.bytes("target");
  const std::string path = arguments.bytes("path");
  if (!arguments.ok()) return info.Env().Undefined();
  return finish(info.Env(), makeSymlink(root, target, path), quoted(target, path));
}

Napi::Value jsMakeLink(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  const int root = arguments.descriptor("root");
  const std::string from = arguments.bytes("from");
  const std::string to = arguments.bytes("to");
  if (!arguments.ok()) return info.Env().Undefined();
  return finish(info.Env(), makeLink(root, from, to), quoted(from, to));
}

Napi::Value jsMakeNode(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  const int root = arguments.descriptor("root");
  const std::string path = arguments.bytes("path");
  const auto mode = static_cast<mode_t>(arguments.integer("mode", 0, 0177777));
  const uint32_t major = arguments.unsigned32("rdevMajor");
  const uint32_t minor = arguments.unsigned32("rdevMinor");
  if (!arguments.ok()) return info.Env().Undefined();
  return finish(info.Env(), makeNode(root, path, mode, major, minor), quoted(path));
}

Napi::Value jsUnlink(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  const int root = arguments.descriptor("root");
  const std::string path = arguments.bytes("path");
  if (!arguments.ok()) return info.Env().Undefined();
  return finish(info.Env(), unlink(root, path), quoted(path));
}

Napi::Value jsRemoveDirectory(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  const int root = arguments.descriptor("root");
  const std::string path = arguments.bytes("path");
  if (!arguments.ok()) return info.Env().Undefined();
  return finish(info.Env(), removeDirectory(root, path), quoted(path));
}

Napi::Value jsRename(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  const int root = arguments.descriptor("root");
  const std::string from = arguments.bytes("from");
  const std::string to = arguments.bytes("to");
  const auto flags = static_cast<unsigned>(arguments.integer("flags", 0, 2));
  if (!arguments.ok()) return info.Env().Undefined();
  return finish(info.Env(), rename(root, from, to, flags), quoted(from, to));
}

Napi::Value jsSetMode(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  const int root = arguments.descriptor("root");
  const std::string path = arguments.bytes("path");
  const mode_t mode = arguments.mode("mode");
  if (!arguments.ok()) return info.Env().Undefined();
  return finish(info.Env(), setMode(root, path, mode), quoted(path));
}

Napi::Value jsSetOwner(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  const int root = arguments.descriptor("root");
  const std::string path = arguments.bytes("path");
  const uint32_t uid = arguments.unsigned32("uid");
  const uint32_t gid = arguments.unsigned32("gid");
  if (!arguments.ok()) return info.Env().Undefined();
  return finish(info.Env(), setOwner(root, path, uid, gid), quoted(path));
}

Napi::Value jsSetTimes(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  const int root = arguments.descriptor("root");
  const std::string path = arguments.bytes("path");
  const std::optional<int64_t> atimeNs = arguments.optionalNanoseconds("atimeNs");
  const int64_t mtimeNs = arguments.nanoseconds("mtimeNs");
  if (!arguments.ok()) return info.Env().Undefined();
  return finish(info.Env(), setTimes(root, path, atimeNs, mtimeNs), quoted(path));
}

Napi::Value jsSetXattr(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  const int root = arguments.descriptor("root");
  const std::string path = arguments.bytes("path");
  const std::string name = arguments.bytes("name");
  const std::string value = arguments.bytes("value");
  if (!arguments.ok()) return info.Env().Undefined();
  return finish(info.Env(), setXattr(root, path, name, value), quoted(path));
}

Napi::Value jsRemoveXattr(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  const int root = arguments.descriptor("root");
  const std::string path = arguments.bytes("path");
  const std::string name = arguments.bytes("name");
  if (!arguments.ok()) return info.Env().Undefined();
  return finish(info.Env(), removeXattr(root, path, name), quoted(path));
}

Napi::Value jsSyncFileSystem(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  const int fd = arguments.descriptor("fd");
  if (!arguments.ok()) return info.Env().Undefined();
  return finish(info.Env(), syncFileSystem(fd), "");
}

Napi::Value jsPunchHole(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  const int fd = arguments.descriptor("fd");
  const int64_t offset = arguments.integer("offset", 0, std::numeric_limits<int64_t>::max());
  const int64_t length = arguments.integer("length", 1, std::numeric_limits<int64_t>::max());
  if (!arguments.ok()) return info.Env().Undefined();
  return finish(info.Env(), punchHole(fd, offset, length), "");
}

Napi::Value jsArmWriteFault(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  const int64_t kind = arguments.integer("kind", 0, 3);
  const int64_t nth = arguments.integer("nth", 0, std::numeric_limits<int32_t>::max());
  if (!arguments.ok()) return info.Env().Undefined();
  return Napi::Boolean::New(info.Env(), armWriteFault(static_cast<WriteFault>(kind), static_cast<long>(nth)));
}

}  // namespace

void registerChange(Napi::Env env, Napi::Object exports) {
  exports.Set("makeDirectory", Napi::Function::New<jsMakeDirectory>(env, "makeDirectory"));
  exports.Set("makeSymlink", Napi::Function::New<jsMakeSymlink>(env, "makeSymlink"));
  exports.Set("makeLink", Napi::Function::New<jsMakeLink>(env, "makeLink"));
  exports.Set("makeNode", Napi::Function::New<jsMakeNode>(env, "makeNode"));
  exports.Set("unlink", Napi::Function::New<jsUnlink>(env, "unlink"));
  exports.Set("removeDirectory", Napi::Function::New<jsRemoveDirectory>(env, "removeDirectory"));
  exports.Set("rename", Napi::Function::New<jsRename>(env, "rename"));
  exports.Set("setMode", Napi::Function::New<jsSetMode>(env, "setMode"));
  exports.Set("setOwner", Napi::Function::New<jsSetOwner>(env, "setOwner"));
  exports.Set("setTimes", Napi::Function::New<jsSetTimes>(env, "setTimes"));
  exports.Set("setXattr", Napi::Function::New<jsSetXattr>(env, "setXattr"));
  exports.Set("removeXattr", Napi::Function::New<jsRemoveXattr>(env, "removeXattr"));
  exports.Set("armWriteFault", Napi::Function::New<jsArmWriteFault>(env, "armWriteFault"));
  exports.Set("punchHole", Napi::Function::New<jsPunchHole>(env, "punchHole"));
  exports.Set("syncFileSystem", Napi::Function::New<jsSyncFileSystem>(env, "syncFileSystem"));
}

}  // namespace agentrewind
