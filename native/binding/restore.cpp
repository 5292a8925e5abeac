// The steps of a restore, off the main thread; and the numbered fault points.
#include <uv.h>

#include "../core/faults.hpp"
#include "../core/restore-run.hpp"
#include "arguments.hpp"
#include "register.hpp"

namespace agentrewind {
namespace {

class RestoreWorker : public Napi::AsyncWorker {
 public:
  RestoreWorker(Napi::Env env, int root, std::string bytes)
      : Napi::AsyncWorker(env, "agentrewind.restore"),
        deferred_(Napi::Promise::Deferred::New(env)),
        root_(root),
        bytes_(std::move(bytes)) {}

  Napi::Promise promise() const { return deferred_.Promise(); }

  void Execute() override {
    const std::optional<std::vector<Job>> jobs = decodeJobs(bytes_);
    if (!jobs) return SetError("the jobs of a restore are damaged");
    failed_ = runJobs(root_, *jobs);
  }

  void OnOK() override {
    Napi::Array list = Napi::Array::New(Env(), failed_.size());
    uint32_t at = 0;
    for (const FailedJob& one : failed_) {
      Napi::HandleScope scope(Env());
      char name[64] = "";
      if (one.failure.error.code != 0) uv_err_name_r(-one.failure.error.code, name, sizeof(name));
      Napi::Object failure = Napi::Object::New(Env());
      failure.Set("index", Napi::Number::New(Env(), static_cast<double>(one.index)));
      failure.Set("kind", Napi::Number::New(Env(), static_cast<double>(one.failure.kind)));
      failure.Set("code", Napi::String::New(Env(), name));
      failure.Set("syscall", Napi::String::New(Env(), one.failure.error.syscall));
      list.Set(at++, failure);
    }
    deferred_.Resolve(list);
  }

  void OnError(const Napi::Error& error) override { deferred_.Reject(error.Value()); }

 private:
  Napi::Promise::Deferred deferred_;
  const int root_;
  const std::string bytes_;
  std::vector<FailedJob> failed_;
};

Napi::Value jsRunJobs(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  const int root = arguments.descriptor("root");
  std::string given = arguments.bytes("jobs");
  if (!arguments.ok()) return info.Env().Undefined();
  auto* worker = new RestoreWorker(info.Env(), root, std::move(given));
  const Napi::Promise promise = worker->promise();
  worker->Queue();
  return promise;
}

Napi::Value jsFaultPoints(const Napi::CallbackInfo& info) {
  Napi::Object points = Napi::Object::New(info.Env());
#define AGENTREWIND_FAULT_ENTRY(name, number, text) points.Set(text, Napi::Number::New(info.Env(), number));
  AGENTREWIND_FAULT_POINTS(AGENTREWIND_FAULT_ENTRY)
#undef AGENTREWIND_FAULT_ENTRY
  return points;
}

}  // namespace

void registerRestore(Napi::Env env, Napi::Object exports) {
  exports.Set("runJobs", Napi::Function::New<jsRunJobs>(env, "runJobs"));
  exports.Set("faultPoints", Napi::Function::New<jsFaultPoints>(env, "faultPoints"));
}

}  // namespace agentrewind
