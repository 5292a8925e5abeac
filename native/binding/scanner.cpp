// The Scanner class: one directory's last tree, and scans that run on threads of their own and ask the store through the event loop.
#include <malloc.h>
#include <pthread.h>

#include <condition_variable>
#include <functional>
#include <limits>
#include <mutex>

#include "../core/scan.hpp"
#include "../core/tree-image.hpp"
#include "arguments.hpp"
#include "errors.hpp"
#include "register.hpp"

namespace agentrewind {
namespace {

/** Deep trees are walked by recursion. */
constexpr size_t stackSize = 64 << 20;

Napi::Buffer<char> toBuffer(Napi::Env env, std::string_view bytes) {
  return Napi::Buffer<char>::Copy(env, bytes.data(), bytes.size());
}

/** Calls into JavaScript from the scan's threads; each waits for its answer. */
class JsHost : public ScanHost {
 public:
  JsHost(Napi::Env env, Napi::Function reserve, Napi::Function excluded)
      : reserve_(Napi::ThreadSafeFunction::New(env, reserve, "scan.reserve", 0, 1)),
        excluded_(Napi::ThreadSafeFunction::New(env, excluded, "scan.excluded", 0, 1)) {}

  Status reserve(const std::vector<Sha256>& names, const std::vector<uint32_t>& lengths, int& pack,
                 std::vector<int64_t>& offsets) override {
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

  Result<std::vector<bool>> excluded(const std::string& directory, const std::vector<std::string_view>& names) override {
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

  void release() {
    reserve_.Release();
    excluded_.Release();
  }

 private:
  using Act = std::function<bool(Napi::Env, Napi::Function)>;
  struct Request {
    const Act& act;
    std::mutex mutex;
    std::condition_variable changed;
    bool done = false;
    bool answered = false;
  };

  /** False when JavaScript threw (its wrapper remembers what) or is going away. */
  static bool ask(const Napi::ThreadSafeFunction& function, const Act& act) {
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

  const Napi::ThreadSafeFunction reserve_;
  const Napi::ThreadSafeFunction excluded_;
};

/** What outlives the JavaScript object while a scan runs. */
struct ScannerState {
  std::shared_ptr<const Node> kept;
  std::shared_ptr<const Node> found;
  std::vector<std::vector<std::string>> groups;
  std::atomic<bool> aborted{false};
  bool running = false;
};

struct ScanJob {
  std::shared_ptr<ScannerState> state;
  std::shared_ptr<const Node> previous;
  std::unique_ptr<JsHost> host;
  Napi::ThreadSafeFunction finished;
  Napi::Promise::Deferred deferred;
  int root;
  ScanOptions options;
  ScanResult result;
  ScanError error{ScanError::Where::aborted, {0, ""}, ""};
  bool done = false;
};

Napi::Value toValue(Napi::Env env, const ScanResult& result) {
  Napi::Object value = Napi::Object::New(env);
  value.Set("snapshot", Napi::Buffer<uint8_t>::Copy(env, result.snapshot.data(), result.snapshot.size()));
  Napi::Array problems = Napi::Array::New(env, result.problems.size());
  for (uint32_t i = 0; i < result.problems.size(); i++) {
    Napi::Object problem = Napi::Object::New(env);
    problem.Set("path", toBuffer(env, result.problems[i].path));
    problem.Set("reason", Napi::String::New(env, result.problems[i].reason));
    problems.Set(i, problem);
  }
  value.Set("problems", problems);
  value.Set("entries", Napi::Number::New(env, static_cast<double>(result.entries)));
  value.Set("bytes", Napi::Number::New(env, static_cast<double>(result.bytes)));
  value.Set("read", Napi::Number::New(env, static_cast<double>(result.read)));
  return value;
}

Napi::Value toError(Napi::Env env, const ScanError& error) {
  constexpr const char* places[] = {"workspace", "store", "aborted"};
  Napi::Error value = makeError(env, error.error, error.path.empty() ? "" : quoted(error.path));
  value.Set("where", Napi::String::New(env, places[static_cast<int>(error.where)]));
  return value.Value();
}

void finish(Napi::Env env, Napi::Function, ScanJob* finished) {
  const std::unique_ptr<ScanJob> job(finished);
  const Napi::HandleScope scope(env);
  job->state->running = false;
  if (!job->done) {
    job->deferred.Reject(toError(env, job->error));
    return;
  }
  job->state->found = job->result.root;
  job->state->groups = std::move(job->result.groups);
  job->deferred.Resolve(toValue(env, job->result));
}

void* run(void* argument) {
  ScanJob* job = static_cast<ScanJob*>(argument);
  job->done = scan(job->root, job->previous, job->options, *job->host, job->state->aborted, job->result, job->error);
  job->previous = nullptr;
  job->host->release();
#ifdef __GLIBC__
  // Each thread's arena would keep what it has freed.
  malloc_trim(0);
#endif
  Napi::ThreadSafeFunction finished = job->finished;
  finished.BlockingCall(job, finish);
  finished.Release();
  return nullptr;
}

class TreeWorker : public Napi::AsyncWorker {
 public:
  TreeWorker(Napi::Env env, std::shared_ptr<ScannerState> state, std::string image, int64_t unsettledFromNs)
      : Napi::AsyncWorker(env, "tree"),
        deferred_(env),
        state_(std::move(state)),
        image_(std::move(image)),
        unsettledFromNs_(unsettledFromNs) {
    tree_ = state_->kept;
    loads_ = !image_.empty();
  }

  Napi::Promise promise() { return deferred_.Promise(); }

 protected:
  void Execute() override {
    if (loads_) tree_ = loadTree(image_, unsettledFromNs_);
    else if (tree_) image_ = saveTree(*tree_);
  }

  void OnOK() override {
    if (!loads_) return deferred_.Resolve(image_.empty() ? Env().Null() : handOver());
    if (tree_) state_->kept = tree_;
    deferred_.Resolve(Napi::Boolean::New(Env(), tree_ != nullptr));
  }

 private:
  /** The image is as large as the tree: it is not copied. */
  Napi::Value handOver() {
    auto* image = new std::string(std::move(image_));
    return Napi::Buffer<char>::New(
        Env(), image->data(), image->size(), [](Napi::Env, char*, std::string* owner) { delete owner; }, image);
  }

  Napi::Promise::Deferred deferred_;
  const std::shared_ptr<ScannerState> state_;
  std::string image_;
  const int64_t unsettledFromNs_;
  std::shared_ptr<const Node> tree_;
  bool loads_;
};

class Scanner : public Napi::ObjectWrap<Scanner> {
 public:
  static Napi::Function define(Napi::Env env) {
    return DefineClass(env, "Scanner",
                       {InstanceMethod<&Scanner::start>("scan"), InstanceMethod<&Scanner::abort>("abort"),
                        InstanceMethod<&Scanner::keep>("keep"), InstanceMethod<&Scanner::forget>("forget"),
                        InstanceMethod<&Scanner::lookup>("lookup"), InstanceMethod<&Scanner::groups>("groups"),
                        InstanceMethod<&Scanner::save>("save"), InstanceMethod<&Scanner::load>("load")});
  }

  explicit Scanner(const Napi::CallbackInfo& info)
      : Napi::ObjectWrap<Scanner>(info), state_(std::make_shared<ScannerState>()) {}

 private:
  Napi::Value start(const Napi::CallbackInfo& info) {
    Arguments arguments(info);
    const int root = arguments.descriptor("root");
    ScanOptions options;
    options.stage = arguments.bytes("stage");
    options.fidelity = static_cast<uint8_t>(arguments.integer("fidelity", 0, 255));
    options.asksExcluded = arguments.integer("asksExcluded", 0, 1) == 1;
    const Napi::Function reserve = arguments.function("reserve");
    const Napi::Function excluded = arguments.function("excluded");
    if (!arguments.ok()) return info.Env().Undefined();
    if (state_->running) {
      Napi::TypeError::New(info.Env(), "a scan is running").ThrowAsJavaScriptException();
      return info.Env().Undefined();
    }
    auto deferred = Napi::Promise::Deferred::New(info.Env());
    auto finished = Napi::ThreadSafeFunction::New(info.Env(), reserve, "scan.finished", 0, 1);
    auto job = std::unique_ptr<ScanJob>(
        new ScanJob{state_, state_->kept, std::make_unique<JsHost>(info.Env(), reserve, excluded), finished, deferred,
                    root, std::move(options), {}, {ScanError::Where::aborted, {0, ""}, ""}, false});
    state_->aborted = false;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, stackSize);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_t thread;
    const int failed = pthread_create(&thread, &attributes, run, job.get());
    pthread_attr_destroy(&attributes);
    if (failed != 0) {
      job->host->release();
      job->finished.Release();
      return throwError(info.Env(), Errno{failed, "pthread_create"}, "");
    }
    state_->running = true;
    job.release();
    return deferred.Promise();
  }

  void abort(const Napi::CallbackInfo&) { state_->aborted = true; }

  void keep(const Napi::CallbackInfo&) { state_->kept = state_->found; }

  void forget(const Napi::CallbackInfo&) { state_->kept = nullptr; }

  Napi::Value lookup(const Napi::CallbackInfo& info) {
    Arguments arguments(info);
    const std::string path = arguments.bytes("path");
    if (!arguments.ok()) return info.Env().Undefined();
    const Node* node = state_->kept ? findNode(*state_->kept, path) : nullptr;
    if (node == nullptr) return info.Env().Null();
    Napi::Object value = Napi::Object::New(info.Env());
    value.Set("type", Napi::Number::New(info.Env(), static_cast<int>(node->type)));
    value.Set("ino", Napi::BigInt::New(info.Env(), node->stat.ino));
    value.Set("size", Napi::Number::New(info.Env(), static_cast<double>(node->stat.size)));
    value.Set("mtimeNs", Napi::BigInt::New(info.Env(), node->stat.mtimeNs));
    value.Set("ctimeNs", Napi::BigInt::New(info.Env(), node->stat.ctimeNs));
    return value;
  }

  Napi::Value groups(const Napi::CallbackInfo& info) {
    Napi::Array list = Napi::Array::New(info.Env(), state_->groups.size());
    for (uint32_t i = 0; i < state_->groups.size(); i++) {
      const Napi::HandleScope scope(info.Env());
      const std::vector<std::string>& group = state_->groups[i];
      Napi::Array members = Napi::Array::New(info.Env(), group.size());
      for (uint32_t j = 0; j < group.size(); j++) members.Set(j, toBuffer(info.Env(), group[j]));
      list.Set(i, members);
    }
    return list;
  }

  Napi::Value save(const Napi::CallbackInfo& info) { return work(info.Env(), {}, 0); }

  Napi::Value load(const Napi::CallbackInfo& info) {
    Arguments arguments(info);
    std::string image = arguments.bytes("image");
    const int64_t unsettledFromNs =
        arguments.optionalNanoseconds("unsettledFromNs").value_or(std::numeric_limits<int64_t>::max());
    if (!arguments.ok()) return info.Env().Undefined();
    // An empty image is no tree.
    return work(info.Env(), image.empty() ? std::string(1, '\0') : std::move(image), unsettledFromNs);
  }

  Napi::Value work(Napi::Env env, std::string image, int64_t unsettledFromNs) {
    auto* worker = new TreeWorker(env, state_, std::move(image), unsettledFromNs);
    worker->Queue();
    return worker->promise();
  }

  const std::shared_ptr<ScannerState> state_;
};

}  // namespace

void registerScanner(Napi::Env env, Napi::Object exports) { exports.Set("Scanner", Scanner::define(env)); }

}  // namespace agentrewind
