#include "scan-host.hpp"

#include <condition_variable>
#include <mutex>

namespace agentrewind {
namespace {

struct Request {
  const std::function<bool(Napi::Env, Napi::Function)>& act;
  std::mutex mutex;
  std::condition_variable changed;
  bool done = false;
  bool answered = false;
};

}  // namespace

Napi::Buffer<char> toBuffer(Napi::Env env, std::string_view bytes) {
  return Napi::Buffer<char>::Copy(env, bytes.data(), bytes.size());
}

JsHost::JsHost(Napi::Env env, Napi::Function reserve, Napi::Function excluded)
    : reserve_(Napi::ThreadSafeFunction::New(env, reserve, "scan.reserve", 0, 1)),
      excluded_(Napi::ThreadSafeFunction::New(env, excluded, "scan.excluded", 0, 1)) {}

Status JsHost::reserve(const std::vector<Sha256>& names, const std::vector<uint32_t>& lengths, int& pack,
               std::vector<int64_t>& offsets) {
  const bool answered = ask(reserve_, [&](Napi::Env env, Napi::Function function) {
    Napi::Buffer<uint8_t> namesValue = Napi::Buffer<uint8_t>::Copy(env, names[0].data(), names.size() * sizeof(Sha256));
    Napi::Uint32Array lengthsValue = Napi::Uint32Array::New(env, lengths.size());
    for (size_t i = 0; i < lengths.size(); i++) lengthsValue[i] = lengths[i];
    const Napi::Value answer = function.Call({namesValue, lengthsValue});
    if (answer.IsEmpty() || !answer.IsObject()) return false;
    const Napi::Object room = answer.As<Napi::Object>();
    const Napi::Value places = room.Get("offsets");
    if (!places.IsTypedArray()) return false;
    const Napi::Float64Array values = places.As<Napi::Float64Array>();
    if (values.ElementLength() != lengths.size()) return false;
    pack = room.Get("fd").As<Napi::Number>().Int32Value();
    for (size_t i = 0; i < lengths.size(); i++) offsets.push_back(static_cast<int64_t>(values[i]));
    return true;
  });
  return answered ? Status(Done{}) : Status(Errno{ECANCELED, "reserve"});
}

Result<std::vector<bool>> JsHost::excluded(const std::string& directory, const std::vector<std::string_view>& names) {
  std::vector<bool> answers;
  const bool answered = ask(excluded_, [&](Napi::Env env, Napi::Function function) {
    Napi::Array list = Napi::Array::New(env, names.size());
    for (size_t i = 0; i < names.size(); i++) list.Set(static_cast<uint32_t>(i), toBuffer(env, names[i]));
    const Napi::Value answer = function.Call({toBuffer(env, directory), list});
    if (answer.IsEmpty() || !answer.IsArray()) return false;
    const Napi::Array values = answer.As<Napi::Array>();
    for (uint32_t i = 0; i < names.size(); i++) answers.push_back(values.Get(i).ToBoolean().Value());
    return true;
  });
  if (!answered) return Errno{ECANCELED, "excluded"};
  return answers;
}

void JsHost::release() {
  reserve_.Release();
  excluded_.Release();
}

bool JsHost::ask(const Napi::ThreadSafeFunction& function, const Act& act) {
  Request request{act, {}, {}, false, false};
  const napi_status queued = function.BlockingCall(&request, [](Napi::Env env, Napi::Function js, Request* asked) {
    const Napi::HandleScope scope(env);
    const bool answered = asked->act(env, js);
    if (env.IsExceptionPending()) env.GetAndClearPendingException();
    const std::lock_guard<std::mutex> lock(asked->mutex);
    asked->answered = answered;
    asked->done = true;
    asked->changed.notify_one();
  });
  if (queued != napi_ok) return false;
  std::unique_lock<std::mutex> lock(request.mutex);
  request.changed.wait(lock, [&] { return request.done; });
  return request.answered;
}

}  // namespace agentrewind
