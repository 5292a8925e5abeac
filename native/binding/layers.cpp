// Subvolumes, stamps, loop devices, mounts, IPC and locks: all but the locks on threads of libuv's.
#include <algorithm>
#include <initializer_list>
#include <limits>

#include "../core/ipc-objects.hpp"
#include "../core/loop-device.hpp"
#include "../core/mounting.hpp"
#include "../core/stamps.hpp"
#include "../core/subvolume.hpp"
#include "../core/tree-difference.hpp"
#include "arguments.hpp"
#include "background.hpp"
#include "register.hpp"

namespace agentrewind {
namespace {

constexpr int64_t exactNumbers = int64_t{1} << 53;

Napi::Value number(Napi::Env env, uint64_t value) { return Napi::Number::New(env, static_cast<double>(value)); }

Napi::Value jsMakeSubvolume(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  const int folder = arguments.descriptor("folder");
  const std::string name = arguments.bytes("name");
  if (!arguments.ok()) return info.Env().Undefined();
  return inBackground(info.Env(), quoted(name), [=] { return makeSubvolume(folder, name); });
}

Napi::Value jsMakeSnapshot(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  const int source = arguments.descriptor("source");
  const int folder = arguments.descriptor("folder");
  const std::string name = arguments.bytes("name");
  const bool readOnly = arguments.integer("readOnly", 0, 1) == 1;
  if (!arguments.ok()) return info.Env().Undefined();
  return inBackground(info.Env(), quoted(name), [=] { return makeSnapshot(source, folder, name, readOnly); });
}

Napi::Value jsRemoveSubvolume(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  const int folder = arguments.descriptor("folder");
  const std::string name = arguments.bytes("name");
  if (!arguments.ok()) return info.Env().Undefined();
  return inBackground(info.Env(), quoted(name), [=] { return removeSubvolume(folder, name); });
}

Napi::Value jsSubvolumeInfo(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  const int fd = arguments.descriptor("fd");
  if (!arguments.ok()) return info.Env().Undefined();
  return inBackground<SubvolumeInfo>(
      info.Env(), "", [=] { return subvolumeInfo(fd); },
      [](Napi::Env env, SubvolumeInfo& found) {
        Napi::Object made = Napi::Object::New(env);
        made.Set("id", number(env, found.id));
        made.Set("generation", number(env, found.generation));
        made.Set("changed", number(env, found.changed));
        made.Set("made", number(env, found.made));
        made.Set("readOnly", Napi::Boolean::New(env, found.readOnly));
        return made;
      });
}

Napi::Value jsWaitForTransaction(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  const int fd = arguments.descriptor("fd");
  const auto transaction = static_cast<uint64_t>(arguments.integer("transaction", 0, exactNumbers));
  if (!arguments.ok()) return info.Env().Undefined();
  return inBackground(info.Env(), "", [=] { return waitForTransaction(fd, transaction); });
}

Napi::Value inodes(Napi::Env env, const std::vector<uint64_t>& found) {
  Napi::BigUint64Array list = Napi::BigUint64Array::New(env, found.size());
  std::copy(found.begin(), found.end(), list.Data());
  return list;
}

Napi::Value jsChangedInodes(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  const int fd = arguments.descriptor("fd");
  const auto transaction = static_cast<uint64_t>(arguments.integer("transaction", 0, exactNumbers));
  if (!arguments.ok()) return info.Env().Undefined();
  return inBackground<ChangedInodes>(
      info.Env(), "", [=] { return changedInodes(fd, transaction); },
      [](Napi::Env env, ChangedInodes& found) {
        Napi::Object made = Napi::Object::New(env);
        made.Set("inodes", inodes(env, found.inodes));
        made.Set("bytes", number(env, found.bytes));
        return made;
      });
}

Napi::Value jsCountIpcObjects(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  const int pid = static_cast<int>(arguments.integer("pid", 1, std::numeric_limits<int>::max()));
  if (!arguments.ok()) return info.Env().Undefined();
  return inBackground<uint64_t>(
      info.Env(), "", [=] { return countIpcObjects(pid); },
      [](Napi::Env env, uint64_t& found) { return number(env, found); });
}

Napi::Value jsInnerSubvolumes(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  const int fd = arguments.descriptor("fd");
  if (!arguments.ok()) return info.Env().Undefined();
  return inBackground<std::vector<InnerSubvolume>>(
      info.Env(), "", [=] { return innerSubvolumes(fd); },
      [](Napi::Env env, std::vector<InnerSubvolume>& found) {
        Napi::Array paths = Napi::Array::New(env, found.size());
        for (uint32_t i = 0; i < found.size(); i++) {
          const std::string path = found[i].folder.empty() ? found[i].name : found[i].folder + "/" + found[i].name;
          paths.Set(i, Napi::Buffer<char>::Copy(env, path.data(), path.size()));
        }
        return paths;
      });
}

void merge(std::vector<uint64_t>& into, std::vector<uint64_t>&& more) {
  into.insert(into.end(), more.begin(), more.end());
  std::sort(into.begin(), into.end());
  into.erase(std::unique(into.begin(), into.end()), into.end());
}

/** What changed in each of the trees since `transaction`; nothing where all has to be looked at. */
Result<std::optional<KnownChanges>> knownChanges(std::initializer_list<int> trees, uint64_t transaction) {
  KnownChanges known;
  for (const int tree : trees) {
    Result<ChangedInodes> changed = changedInodes(tree, transaction);
    if (!changed) return changed.error();
    Result<std::optional<std::vector<uint64_t>>> folders = foldersAbove(tree, changed.value().inodes);
    if (!folders) return folders.error();
    if (!folders.value()) return std::optional<KnownChanges>();
    merge(known.inodes, std::move(changed.value().inodes));
    merge(known.folders, std::move(*folders.value()));
  }
  return std::optional<KnownChanges>(std::move(known));
}

Napi::Value jsCompareTrees(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  const int from = arguments.descriptor("from");
  const int to = arguments.descriptor("to");
  const int64_t since = arguments.integer("since", -1, exactNumbers);
  if (!arguments.ok()) return info.Env().Undefined();
  return inBackground<std::string>(
      info.Env(), "",
      [=]() -> Result<std::string> {
        if (since < 0) return compareTrees(from, to, std::nullopt);
        Result<std::optional<KnownChanges>> known = knownChanges({from, to}, static_cast<uint64_t>(since));
        if (!known) return known.error();
        return compareTrees(from, to, known.value());
      },
      [](Napi::Env env, std::string& records) { return Napi::Buffer<char>::Copy(env, records.data(), records.size()); });
}

Napi::Value jsLookAt(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  const int root = arguments.descriptor("root");
  const std::string path = arguments.bytes("path");
  if (!arguments.ok()) return info.Env().Undefined();
  return inBackground<std::string>(
      info.Env(), quoted(path), [=] { return lookAt(root, path); },
      [](Napi::Env env, std::string& side) { return Napi::Buffer<char>::Copy(env, side.data(), side.size()); });
}

Napi::Value jsStampTree(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  const int root = arguments.descriptor("root");
  const std::string path = arguments.bytes("path");
  if (!arguments.ok()) return info.Env().Undefined();
  return inBackground<std::string>(
      info.Env(), quoted(path), [=] { return stampTree(root, path); },
      [](Napi::Env env, std::string& stamps) { return Napi::Buffer<char>::Copy(env, stamps.data(), stamps.size()); });
}

Napi::Value jsFindLoopDevice(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  const int file = arguments.descriptor("file");
  if (!arguments.ok()) return info.Env().Undefined();
  return inBackground<std::string>(
      info.Env(), "", [=] { return findLoopDevice(file); },
      [](Napi::Env env, std::string& path) -> Napi::Value {
        if (path.empty()) return env.Null();
        return Napi::String::New(env, path);
      });
}

Napi::Value jsAttachLoopDevice(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  const int file = arguments.descriptor("file");
  const bool direct = arguments.integer("direct", 0, 1) == 1;
  if (!arguments.ok()) return info.Env().Undefined();
  return inBackground<LoopDevice>(
      info.Env(), "", [=] { return attachLoopDevice(file, direct); },
      [](Napi::Env env, LoopDevice& device) {
        Napi::Object made = Napi::Object::New(env);
        made.Set("path", Napi::String::New(env, device.path));
        made.Set("fd", Napi::Number::New(env, device.keep));
        return made;
      });
}

Napi::Value jsMount(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  const std::string source = arguments.bytes("source");
  const std::string target = arguments.bytes("target");
  const std::string kind = arguments.bytes("kind");
  const auto flags = static_cast<unsigned long>(arguments.integer("flags", 0, std::numeric_limits<uint32_t>::max()));
  const std::string data = arguments.bytes("data");
  if (!arguments.ok()) return info.Env().Undefined();
  return inBackground(info.Env(), quoted(target), [=] { return mountAt(source, target, kind, flags, data); });
}

Napi::Value jsUnmount(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  const std::string target = arguments.bytes("target");
  const int flags = static_cast<int>(arguments.integer("flags", 0, 15));
  if (!arguments.ok()) return info.Env().Undefined();
  return inBackground(info.Env(), quoted(target), [=] { return unmountAt(target, flags); });
}

Napi::Value jsLockFile(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  const int fd = arguments.descriptor("fd");
  const auto kind = static_cast<LockKind>(arguments.integer("kind", 0, 2));
  if (!arguments.ok()) return info.Env().Undefined();
  Result<bool> locked = lockFile(fd, kind);
  if (!locked) return throwError(info.Env(), locked.error(), "");
  return Napi::Boolean::New(info.Env(), locked.value());
}

}  // namespace

void registerLayers(Napi::Env env, Napi::Object exports) {
  exports.Set("makeSubvolume", Napi::Function::New<jsMakeSubvolume>(env, "makeSubvolume"));
  exports.Set("makeSnapshot", Napi::Function::New<jsMakeSnapshot>(env, "makeSnapshot"));
  exports.Set("removeSubvolume", Napi::Function::New<jsRemoveSubvolume>(env, "removeSubvolume"));
  exports.Set("subvolumeInfo", Napi::Function::New<jsSubvolumeInfo>(env, "subvolumeInfo"));
  exports.Set("waitForTransaction", Napi::Function::New<jsWaitForTransaction>(env, "waitForTransaction"));
  exports.Set("changedInodes", Napi::Function::New<jsChangedInodes>(env, "changedInodes"));
  exports.Set("countIpcObjects", Napi::Function::New<jsCountIpcObjects>(env, "countIpcObjects"));
  exports.Set("innerSubvolumes", Napi::Function::New<jsInnerSubvolumes>(env, "innerSubvolumes"));
  exports.Set("compareTrees", Napi::Function::New<jsCompareTrees>(env, "compareTrees"));
  exports.Set("lookAt", Napi::Function::New<jsLookAt>(env, "lookAt"));
  exports.Set("stampTree", Napi::Function::New<jsStampTree>(env, "stampTree"));
  exports.Set("findLoopDevice", Napi::Function::New<jsFindLoopDevice>(env, "findLoopDevice"));
  exports.Set("attachLoopDevice", Napi::Function::New<jsAttachLoopDevice>(env, "attachLoopDevice"));
  exports.Set("mount", Napi::Function::New<jsMount>(env, "mount"));
  exports.Set("unmount", Napi::Function::New<jsUnmount>(env, "unmount"));
  exports.Set("lockFile", Napi::Function::New<jsLockFile>(env, "lockFile"));
}

}  // namespace agentrewind
