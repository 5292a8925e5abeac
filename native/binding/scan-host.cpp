#include "scan-host.hpp"

#include <algorithm>

namespace agentrewind {

Napi::Buffer<char> toBuffer(Napi::Env env, std::string_view bytes) {
  return Napi::Buffer<char>::Copy(env, bytes.data(), bytes.size());
}

JsHost::JsHost(Napi::Env env, Napi::Function reserve, Napi::Function excluded, Napi::Function later)
    : reserve_(Napi::Persistent(reserve)),
      excluded_(Napi::Persistent(excluded)),
      later_(Napi::Persistent(later)),
      wake_(Napi::ThreadSafeFunction::New(env, later, "scan.ask", 0, 1)) {}

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

void JsHost::release() { wake_.Release(); }

bool JsHost::ask(const Napi::FunctionReference& function, const Act& act) {
  Request request{function, act};
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    waiting_.push_back(&request);
  }
  const napi_status queued = wake_.BlockingCall([host = shared_from_this()](Napi::Env env, Napi::Function) {
    const Napi::HandleScope scope(env);
    host->schedule(env);
  });
  std::unique_lock<std::mutex> lock(mutex_);
  if (queued != napi_ok) {
    waiting_.erase(std::remove(waiting_.begin(), waiting_.end(), &request), waiting_.end());
    return false;
  }
  changed_.wait(lock, [&] { return request.done; });
  return request.answered;
}

/** Node 20 calls a thread-safe function up to 1,000 times before the loop goes on, and threads that get answers ask again: one answer a turn. */
void JsHost::schedule(Napi::Env env) {
  if (scheduled_) return;
  scheduled_ = true;
  later_.Call({Napi::Function::New(env, [host = shared_from_this()](const Napi::CallbackInfo& info) { host->answerOne(info.Env()); })});
}

void JsHost::answerOne(Napi::Env env) {
  scheduled_ = false;
  std::unique_lock<std::mutex> lock(mutex_);
  if (waiting_.empty()) return;
  Request* const request = waiting_.front();
  waiting_.pop_front();
  const bool more = !waiting_.empty();
  lock.unlock();
  const bool answered = request->act(env, request->function.Value());
  if (env.IsExceptionPending()) env.GetAndClearPendingException();
  // Before the answer: with the last one the scan may end, and this with it.
  if (more) schedule(env);
  lock.lock();
  request->answered = answered;
  request->done = true;
  changed_.notify_all();
}

}  // namespace agentrewind
