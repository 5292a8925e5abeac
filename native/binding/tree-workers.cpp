#include "tree-workers.hpp"

#include "../core/tree-image.hpp"
#include "errors.hpp"

namespace agentrewind {
namespace {

class Saving : public Napi::AsyncWorker {
 public:
  Saving(Napi::Env env, std::shared_ptr<const Node> tree, int fd, int64_t offset)
      : Napi::AsyncWorker(env, "tree.save"), deferred_(env), tree_(std::move(tree)), fd_(fd), offset_(offset) {}

  Napi::Promise promise() { return deferred_.Promise(); }

 protected:
  void Execute() override {
    if (tree_) size_ = saveTree(*tree_, fd_, offset_);
  }

  void OnOK() override {
    if (size_) deferred_.Resolve(Napi::Number::New(Env(), static_cast<double>(size_.value())));
    else deferred_.Reject(makeError(Env(), size_.error(), "").Value());
  }

 private:
  Napi::Promise::Deferred deferred_;
  const std::shared_ptr<const Node> tree_;
  const int fd_;
  const int64_t offset_;
  Result<uint64_t> size_{uint64_t{0}};
};

class Loading : public Napi::AsyncWorker {
 public:
  Loading(Napi::Env env, std::shared_ptr<ScannerState> state, std::string image, int64_t unsettledFromNs)
      : Napi::AsyncWorker(env, "tree.load"),
        deferred_(env),
        state_(std::move(state)),
        image_(std::move(image)),
        unsettledFromNs_(unsettledFromNs) {}

  Napi::Promise promise() { return deferred_.Promise(); }

 protected:
  void Execute() override { tree_ = loadTree(image_, unsettledFromNs_); }

  void OnOK() override {
    if (tree_) state_->kept = tree_;
    deferred_.Resolve(Napi::Boolean::New(Env(), tree_ != nullptr));
  }

 private:
  Napi::Promise::Deferred deferred_;
  const std::shared_ptr<ScannerState> state_;
  const std::string image_;
  const int64_t unsettledFromNs_;
  std::shared_ptr<const Node> tree_;
};

template <typename Worker, typename... Given>
Napi::Value start(Napi::Env env, Given... given) {
  auto* worker = new Worker(env, std::move(given)...);
  const Napi::Promise promise = worker->promise();
  worker->Queue();
  return promise;
}

}  // namespace

Napi::Value saveInBackground(Napi::Env env, std::shared_ptr<const Node> tree, int fd, int64_t offset) {
  return start<Saving>(env, std::move(tree), fd, offset);
}

Napi::Value loadInBackground(Napi::Env env, std::shared_ptr<ScannerState> state, std::string image, int64_t unsettledFromNs) {
  return start<Loading>(env, std::move(state), std::move(image), unsettledFromNs);
}

}  // namespace agentrewind
