// The Effects class: what the programs in the kernel have seen.
#include <pthread.h>

#include <csignal>

#include "../core/bpf-call.hpp"
#include "../core/bpf-effects.hpp"
#include "arguments.hpp"
#include "background.hpp"
#include "errors.hpp"
#include "register.hpp"

namespace agentrewind {
namespace {

Napi::Value jsTryBpf(const Napi::CallbackInfo& info) {
  Status tried = tryProgram();
  if (!tried) return throwError(info.Env(), tried.error(), "");
  return info.Env().Undefined();
}

/** Null where libbpf is there. */
Napi::Value jsProbeLibbpf(const Napi::CallbackInfo& info) {
  std::string reason;
  if (BpfLibrary::get(reason) != nullptr) return info.Env().Null();
  return Napi::String::New(info.Env(), reason);
}

Napi::Value jsBpfPrograms(const Napi::CallbackInfo& info) {
  Result<std::vector<LoadedProgram>> found = loadedPrograms();
  if (!found) return throwError(info.Env(), found.error(), "");
  Napi::Array list = Napi::Array::New(info.Env(), found.value().size());
  for (uint32_t i = 0; i < found.value().size(); i++) {
    Napi::Object one = Napi::Object::New(info.Env());
    one.Set("id", Napi::Number::New(info.Env(), found.value()[i].id));
    one.Set("name", Napi::String::New(info.Env(), found.value()[i].name));
    list.Set(i, one);
  }
  return list;
}

struct Loaded {
  std::unique_ptr<BpfEffects> effects;
  std::string reason;
};

/** The kernel gives up a program's check when a signal waits for the thread. */
Loaded loadUndisturbed(const std::string& object, const BpfLimits& limits) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  Loaded made;
  made.effects = BpfEffects::open(object, limits, made.reason);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return made;
}

/** Resolves with what `Effects` is made of, or with the reason why there is none, as text. */
Napi::Value jsLoadEffects(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  const std::string object = arguments.bytes("object");
  BpfLimits limits;
  limits.threads = arguments.unsigned32("threads");
  limits.dirty = arguments.unsigned32("dirty");
  limits.connections = arguments.unsigned32("connections");
  if (!arguments.ok()) return info.Env().Undefined();
  return inBackground<Loaded>(
      info.Env(), "", [=]() -> Result<Loaded> { return loadUndisturbed(object, limits); },
      [](Napi::Env env, Loaded& made) -> Napi::Value {
        if (made.effects == nullptr) return Napi::String::New(env, made.reason);
        return Napi::External<BpfEffects>::New(env, made.effects.release());
      });
}

class Effects : public Napi::ObjectWrap<Effects> {
 public:
  static Napi::Function define(Napi::Env env) {
    return DefineClass(env, "Effects",
                       {InstanceMethod<&Effects::watch>("watch"), InstanceMethod<&Effects::unwatch>("unwatch"),
                        InstanceMethod<&Effects::addCgroup>("addCgroup"), InstanceMethod<&Effects::addTracers>("addTracers"),
                        InstanceMethod<&Effects::addDevice>("addDevice"),
                        InstanceMethod<&Effects::read>("read"), InstanceMethod<&Effects::threads>("threads"),
                        InstanceMethod<&Effects::takeDirty>("takeDirty"),
                        InstanceMethod<&Effects::takeConnections>("takeConnections"),
                        InstanceMethod<&Effects::losses>("losses"), InstanceMethod<&Effects::form>("form"), InstanceMethod<&Effects::close>("close")});
  }

  explicit Effects(const Napi::CallbackInfo& info) : Napi::ObjectWrap<Effects>(info) {
    if (info.Length() != 1 || !info[0].IsExternal()) {
      Napi::TypeError::New(info.Env(), "The argument \"loaded\" must come from loadEffects").ThrowAsJavaScriptException();
      return;
    }
    effects_.reset(info[0].As<Napi::External<BpfEffects>>().Data());
  }

 private:
  /** Throws where it is closed or has no such slot. */
  bool usable(Napi::Env env) {
    if (effects_ == nullptr) Napi::Error::New(env, "it is closed").ThrowAsJavaScriptException();
    return effects_ != nullptr;
  }
  bool knows(Napi::Env env, Arguments& arguments, uint32_t slot) {
    if (!arguments.ok() || !usable(env)) return false;
    if (effects_->watches(slot)) return true;
    Napi::TypeError::New(env, "The argument \"slot\" must be one that is watched").ThrowAsJavaScriptException();
    return false;
  }
  static Napi::Value done(Napi::Env env, const Status& status) {
    if (!status) return throwError(env, status.error(), "");
    return env.Undefined();
  }

  Napi::Value watch(const Napi::CallbackInfo& info) {
    if (!usable(info.Env())) return info.Env().Undefined();
    Result<uint32_t> slot = effects_->watch();
    if (!slot) return throwError(info.Env(), slot.error(), "");
    return Napi::Number::New(info.Env(), slot.value());
  }

  Napi::Value unwatch(const Napi::CallbackInfo& info) {
    Arguments arguments(info);
    const uint32_t slot = arguments.unsigned32("slot");
    if (!knows(info.Env(), arguments, slot)) return info.Env().Undefined();
    return done(info.Env(), effects_->unwatch(slot));
  }

  Napi::Value addCgroup(const Napi::CallbackInfo& info) {
    Arguments arguments(info);
    const uint32_t slot = arguments.unsigned32("slot");
    const auto number = static_cast<uint64_t>(arguments.nanoseconds("number"));
    const uint32_t least = arguments.unsigned32("least");
    const auto most = static_cast<uint32_t>(arguments.integer("most", least, least + int64_t{LEVELS} - 1));
    if (!knows(info.Env(), arguments, slot)) return info.Env().Undefined();
    std::vector<uint32_t> levels;
    for (uint32_t level = least; level <= most; level++) levels.push_back(level);
    return done(info.Env(), effects_->addCgroup(slot, number, levels));
  }

  Napi::Value addTracers(const Napi::CallbackInfo& info) {
    Arguments arguments(info);
    const uint32_t slot = arguments.unsigned32("slot");
    const auto number = static_cast<uint64_t>(arguments.nanoseconds("number"));
    if (!knows(info.Env(), arguments, slot)) return info.Env().Undefined();
    return done(info.Env(), effects_->addTracers(slot, number));
  }

  Napi::Value addDevice(const Napi::CallbackInfo& info) {
    Arguments arguments(info);
    const uint32_t slot = arguments.unsigned32("slot");
    const uint32_t dev = arguments.unsigned32("dev");
    const bool tells = arguments.integer("tells", 0, 1) == 1;
    if (!knows(info.Env(), arguments, slot)) return info.Env().Undefined();
    return done(info.Env(), effects_->addDevice(slot, dev, tells));
  }

  Napi::Value read(const Napi::CallbackInfo& info) {
    Arguments arguments(info);
    const uint32_t slot = arguments.unsigned32("slot");
    if (!knows(info.Env(), arguments, slot)) return info.Env().Undefined();
    Napi::BigUint64Array made = Napi::BigUint64Array::New(info.Env(), BpfEffects::readings);
    effects_->read(slot, made.Data());
    return made;
  }

  Napi::Value threads(const Napi::CallbackInfo& info) {
    Arguments arguments(info);
    const uint32_t slot = arguments.unsigned32("slot");
    if (!knows(info.Env(), arguments, slot)) return info.Env().Undefined();
    Result<std::vector<ThreadSeen>> found = effects_->threads(slot);
    if (!found) return throwError(info.Env(), found.error(), "");
    return flat(info.Env(), found.value().size() * 4, [&](uint64_t* at) {
      for (const ThreadSeen& one : found.value()) {
        *at++ = one.tid;
        *at++ = one.scheduled;
        *at++ = one.returned;
        *at++ = one.waits ? 1 : 0;
      }
    });
  }

  Napi::Value takeDirty(const Napi::CallbackInfo& info) {
    Arguments arguments(info);
    const uint32_t slot = arguments.unsigned32("slot");
    if (!knows(info.Env(), arguments, slot)) return info.Env().Undefined();
    Result<std::vector<InodeSeen>> found = effects_->takeDirty(slot);
    if (!found) return throwError(info.Env(), found.error(), "");
    return flat(info.Env(), found.value().size() * 3, [&](uint64_t* at) {
      for (const InodeSeen& one : found.value()) {
        *at++ = one.dev;
        *at++ = one.ino;
        *at++ = one.classes;
      }
    });
  }

  Napi::Value takeConnections(const Napi::CallbackInfo& info) {
    Arguments arguments(info);
    const uint32_t slot = arguments.unsigned32("slot");
    if (!knows(info.Env(), arguments, slot)) return info.Env().Undefined();
    Result<std::vector<ConnectionSeen>> found = effects_->takeConnections(slot);
    if (!found) return throwError(info.Env(), found.error(), "");
    Napi::Array list = Napi::Array::New(info.Env(), found.value().size());
    for (uint32_t i = 0; i < found.value().size(); i++) {
      const ConnectionSeen& seen = found.value()[i];
      Napi::Object one = Napi::Object::New(info.Env());
      one.Set("family", Napi::Number::New(info.Env(), seen.key.family));
      one.Set("port", Napi::Number::New(info.Env(), seen.key.port));
      one.Set("address", Napi::Buffer<uint8_t>::Copy(info.Env(), seen.key.address, sizeof(seen.key.address)));
      one.Set("count", Napi::Number::New(info.Env(), static_cast<double>(seen.count)));
      list.Set(i, one);
    }
    return list;
  }

  Napi::Value losses(const Napi::CallbackInfo& info) {
    if (!usable(info.Env())) return info.Env().Undefined();
    Result<uint64_t> found = effects_->losses();
    if (!found) return throwError(info.Env(), found.error(), "");
    return Napi::BigInt::New(info.Env(), found.value());
  }

  Napi::Value form(const Napi::CallbackInfo& info) {
    const Napi::Env env = info.Env();
    if (!usable(env)) return env.Undefined();
    Result<std::vector<MapForm>> maps = effects_->maps();
    if (!maps) return throwError(env, maps.error(), "");
    Napi::Array list = Napi::Array::New(env);
    const auto say = [&](const std::string& text) { list.Set(list.Length(), Napi::String::New(env, text)); };
    for (const MapForm& one : maps.value()) {
      std::string text = "map " + one.name;
      for (const uint32_t part : {one.type, one.keySize, one.valueSize, one.entries, one.flags})
        text += " " + std::to_string(part);
      say(text);
    }
    for (const auto& [name, section] : effects_->programs()) say("program " + name + " " + section);
    return list;
  }

  Napi::Value close(const Napi::CallbackInfo& info) {
    effects_.reset();
    return info.Env().Undefined();
  }

  template <typename Fill>
  static Napi::Value flat(Napi::Env env, size_t length, Fill fill) {
    Napi::BigUint64Array made = Napi::BigUint64Array::New(env, length);
    if (length > 0) fill(made.Data());
    return made;
  }

  std::unique_ptr<BpfEffects> effects_;
};

}  // namespace

void registerBpf(Napi::Env env, Napi::Object exports) {
  exports.Set("Effects", Effects::define(env));
  exports.Set("loadEffects", Napi::Function::New<jsLoadEffects>(env, "loadEffects"));
  exports.Set("tryBpf", Napi::Function::New<jsTryBpf>(env, "tryBpf"));
  exports.Set("probeLibbpf", Napi::Function::New<jsProbeLibbpf>(env, "probeLibbpf"));
  exports.Set("bpfPrograms", Napi::Function::New<jsBpfPrograms>(env, "bpfPrograms"));
}

}  // namespace agentrewind
