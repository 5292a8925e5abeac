// findWriters, on a thread of libuv's.
#include "../core/writers.hpp"

#include <algorithm>

#include "arguments.hpp"
#include "register.hpp"

namespace agentrewind {
namespace {

class WritersWorker : public Napi::AsyncWorker {
 public:
  WritersWorker(Napi::Env env, std::vector<uint64_t> inodes)
      : Napi::AsyncWorker(env, "writers"), deferred_(env), inodes_(std::move(inodes)) {}

  Napi::Promise promise() { return deferred_.Promise(); }

 protected:
  void Execute() override {
    std::sort(inodes_.begin(), inodes_.end());
    found_ = findWriters(inodes_);
  }

  void OnOK() override {
    Napi::Array pairs = Napi::Array::New(Env(), found_.size());
    for (uint32_t i = 0; i < found_.size(); i++) {
      Napi::Array pair = Napi::Array::New(Env(), 2);
      pair.Set(0u, Napi::BigInt::New(Env(), found_[i].first));
      pair.Set(1u, Napi::Number::New(Env(), found_[i].second));
      pairs.Set(i, pair);
    }
    deferred_.Resolve(pairs);
  }

 private:
  Napi::Promise::Deferred deferred_;
  std::vector<uint64_t> inodes_;
  std::vector<std::pair<uint64_t, int>> found_;
};

Napi::Value jsFindWriters(const Napi::CallbackInfo& info) {
  const bool fits = info.Length() > 0 && info[0].IsTypedArray() &&
                    info[0].As<Napi::TypedArray>().TypedArrayType() == napi_biguint64_array;
  if (!fits) {
    Napi::TypeError::New(info.Env(), "The argument \"inodes\" must be a BigUint64Array").ThrowAsJavaScriptException();
    return info.Env().Undefined();
  }
  const Napi::BigUint64Array inodes = info[0].As<Napi::BigUint64Array>();
  auto* worker = new WritersWorker(info.Env(), std::vector<uint64_t>(inodes.Data(), inodes.Data() + inodes.ElementLength()));
  worker->Queue();
  return worker->promise();
}

}  // namespace

void registerWriters(Napi::Env env, Napi::Object exports) {
  exports.Set("findWriters", Napi::Function::New<jsFindWriters>(env, "findWriters"));
}

}  // namespace agentrewind
