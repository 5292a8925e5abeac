// The Scanner class: one directory's last tree, and scans that run on threads of their own and ask the store through the event loop.
#include <pthread.h>

#include <limits>

#include "arguments.hpp"
#include "errors.hpp"
#include "register.hpp"
#include "scan-host.hpp"
#include "scanner-state.hpp"
#include "tree-workers.hpp"

namespace agentrewind {
namespace {

/** Deep trees are walked by recursion. */
constexpr size_t stackSize = 64 << 20;

struct ScanJob {
  std::shared_ptr<ScannerState> state;
  std::shared_ptr<const Node> previous;
  /** A wake-up of its can still be on its way when the scan has ended. */
  std::shared_ptr<JsHost> host;
  Napi::ThreadSafeFunction finished;
  Napi::Promise::Deferred deferred;
  int root;
  ScanOptions options;
  bool watches;
  /** Only what a watcher named was looked at. */
  bool trusted = false;
  ScanResult result;
  ScanError error{ScanError::Where::aborted, {0, ""}, ""};
  bool done = false;
  /** The watcher may have missed something: everything was looked at. */
  bool missed = false;
};

Napi::Value toValue(Napi::Env env, const ScanResult& result, bool trusted, bool missed) {
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
  value.Set("trusted", Napi::Boolean::New(env, trusted));
  value.Set("missed", Napi::Boolean::New(env, missed));
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
  job->deferred.Resolve(toValue(env, job->result, job->trusted, job->missed));
}

void* run(void* argument) {
  ScanJob* job = static_cast<ScanJob*>(argument);
  ChangeLog& log = job->state->log;
  const Changes* changes = job->watches ? log.begin(job->root, job->previous != nullptr) : nullptr;
  job->missed = job->watches && log.missed();
  job->trusted = changes != nullptr && !changes->judge;
  job->done = scan(job->root, job->previous, changes, job->options, *job->host, job->state->aborted, job->result, job->error);
  if (job->done && job->watches) log.end(job->result);
  job->previous = nullptr;
  job->host->release();
  Napi::ThreadSafeFunction finished = job->finished;
  finished.BlockingCall(job, finish);
  finished.Release();
  return nullptr;
}

Napi::Value probeWatch(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  const int root = arguments.descriptor("root");
  if (!arguments.ok()) return info.Env().Undefined();
  std::string reason;
  if (Watch::open(root, reason)) return info.Env().Null();
  return Napi::String::New(info.Env(), reason);
}

class Scanner : public Napi::ObjectWrap<Scanner> {
 public:
  static Napi::Function define(Napi::Env env) {
    return DefineClass(env, "Scanner",
                       {InstanceMethod<&Scanner::start>("scan"), InstanceMethod<&Scanner::abort>("abort"),
                        InstanceMethod<&Scanner::keep>("keep"), InstanceMethod<&Scanner::forget>("forget"),
                        InstanceMethod<&Scanner::unwatch>("unwatch"),
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
    const bool watches = arguments.integer("watches", 0, 1) == 1;
    const Napi::Function reserve = arguments.function("reserve");
    const Napi::Function excluded = arguments.function("excluded");
    const Napi::Function later = arguments.function("later");
    if (!arguments.ok()) return info.Env().Undefined();
    if (state_->running) {
      Napi::TypeError::New(info.Env(), "a scan is running").ThrowAsJavaScriptException();
      return info.Env().Undefined();
    }
    auto deferred = Napi::Promise::Deferred::New(info.Env());
    auto finished = Napi::ThreadSafeFunction::New(info.Env(), reserve, "scan.finished", 0, 1);
    auto job = std::unique_ptr<ScanJob>(
        new ScanJob{state_, state_->kept, std::make_shared<JsHost>(info.Env(), reserve, excluded, later), finished,
                    deferred, root, std::move(options), watches, false, {}, {ScanError::Where::aborted, {0, ""}, ""}, false});
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

  void keep(const Napi::CallbackInfo&) {
    state_->kept = state_->found;
    state_->log.keep();
  }

  void forget(const Napi::CallbackInfo&) { state_->kept = nullptr; }

  void unwatch(const Napi::CallbackInfo&) {
    if (!state_->running) state_->log.stop("closed");
  }

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
    value.Set("nlink", Napi::Number::New(info.Env(), node->stat.nlink));
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

  Napi::Value save(const Napi::CallbackInfo& info) {
    Arguments arguments(info);
    const int fd = arguments.descriptor("file");
    const int64_t offset = arguments.integer("offset", 0, std::numeric_limits<uint32_t>::max());
    if (!arguments.ok()) return info.Env().Undefined();
    return saveInBackground(info.Env(), state_->kept, fd, offset);
  }

  Napi::Value load(const Napi::CallbackInfo& info) {
    Arguments arguments(info);
    std::string image = arguments.bytes("image");
    const int64_t unsettledFromNs =
        arguments.optionalNanoseconds("unsettledFromNs").value_or(std::numeric_limits<int64_t>::max());
    if (!arguments.ok()) return info.Env().Undefined();
    return loadInBackground(info.Env(), state_, std::move(image), unsettledFromNs);
  }

  const std::shared_ptr<ScannerState> state_;
};

}  // namespace

void registerScanner(Napi::Env env, Napi::Object exports) {
  exports.Set("Scanner", Scanner::define(env));
  exports.Set("probeWatch", Napi::Function::New(env, probeWatch));
}

}  // namespace agentrewind
