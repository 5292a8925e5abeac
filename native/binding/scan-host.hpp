// Calls into JavaScript from a scan's threads; each waits for its answer.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <napi.h>

#include "../core/scan.hpp"

namespace agentrewind {

Napi::Buffer<char> toBuffer(Napi::Env env, std::string_view bytes);

class JsHost : public ScanHost {
 public:
  JsHost(Napi::Env env, Napi::Function reserve, Napi::Function excluded);

  Status reserve(const std::vector<Sha256>& names, const std::vector<uint32_t>& lengths, int& pack,
                 std::vector<int64_t>& offsets) override;
  Result<std::vector<bool>> excluded(const std::string& directory, const std::vector<std::string_view>& names) override;
  void release();

 private:
  using Act = std::function<bool(Napi::Env, Napi::Function)>;

  /** False when JavaScript threw (its wrapper remembers what) or is going away. */
  static bool ask(const Napi::ThreadSafeFunction& function, const Act& act);

  const Napi::ThreadSafeFunction reserve_;
  const Napi::ThreadSafeFunction excluded_;
};

}  // namespace agentrewind
