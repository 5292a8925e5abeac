// Calls into JavaScript from a scan's threads; each waits for its answer.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include <napi.h>

#include "../core/scan.hpp"

namespace agentrewind {

Napi::Buffer<char> toBuffer(Napi::Env env, std::string_view bytes);

class JsHost : public ScanHost, public std::enable_shared_from_this<JsHost> {
 public:
  /** @param later calls the function that it is given in a later turn of the event loop. */
  JsHost(Napi::Env env, Napi::Function reserve, Napi::Function excluded, Napi::Function later);

  Status reserve(const std::vector<Sha256>& names, const std::vector<uint32_t>& lengths, int& pack,
                 std::vector<int64_t>& offsets) override;
  Result<std::vector<bool>> excluded(const std::string& directory, const std::vector<std::string_view>& names) override;
  void release();

 private:
  using Act = std::function<bool(Napi::Env, Napi::Function)>;

  struct Request {
    const Napi::FunctionReference& function;
    const Act& act;
    bool done = false;
    bool answered = false;
  };

  /** False when JavaScript threw (its wrapper remembers what) or is going away. */
  bool ask(const Napi::FunctionReference& function, const Act& act);
  /** In the event loop. */
  void schedule(Napi::Env env);
  void answerOne(Napi::Env env);

  const Napi::FunctionReference reserve_;
  const Napi::FunctionReference excluded_;
  const Napi::FunctionReference later_;
  const Napi::ThreadSafeFunction wake_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Request*> waiting_;
  /** Only the event loop looks at it. */
  bool scheduled_ = false;
};

}  // namespace agentrewind
