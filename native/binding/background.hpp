// Work of the core on one of Node's own threads, as a promise.
#pragma once

#include <napi.h>

#include <functional>
#include <utility>

#include "errors.hpp"

namespace agentrewind {

template <typename T>
class Background : public Napi::AsyncWorker {
 public:
  using Work = std::function<Result<T>()>;
  using Convert = std::function<Napi::Value(Napi::Env, T&)>;

  Background(Napi::Env env, std::string subject, Work work, Convert convert)
      : Napi::AsyncWorker(env, "agentrewind"),
        deferred_(env),
        subject_(std::move(subject)),
        work_(std::move(work)),
        convert_(std::move(convert)) {}

  Napi::Promise promise() { return deferred_.Promise(); }

 protected:
  void Execute() override { result_ = work_(); }

  void OnOK() override {
    if (result_) deferred_.Resolve(convert_(Env(), result_.value()));
    else deferred_.Reject(makeError(Env(), result_.error(), subject_).Value());
  }

 private:
  Napi::Promise::Deferred deferred_;
  const std::string subject_;
  const Work work_;
  const Convert convert_;
  Result<T> result_{Errno{0, ""}};
};

/** `subject` is what the call was about, as the message of a failure shows it. */
template <typename T>
Napi::Value inBackground(Napi::Env env, std::string subject, std::function<Result<T>()> work,
                         std::function<Napi::Value(Napi::Env, T&)> convert) {
  auto* worker = new Background<T>(env, std::move(subject), std::move(work), std::move(convert));
  const Napi::Promise promise = worker->promise();
  worker->Queue();
  return promise;
}

inline Napi::Value inBackground(Napi::Env env, std::string subject, std::function<Status()> work) {
  return inBackground<Done>(env, std::move(subject), std::move(work), [](Napi::Env given, Done&) { return given.Undefined(); });
}

}  // namespace agentrewind
