// Names and messages are libuv's, so that they read like those of node:fs.
#include "errors.hpp"

#include <uv.h>

namespace agentrewind {

Napi::Value throwError(Napi::Env env, const Errno& error, const std::string& subject) {
  char name[64];
  char text[128];
  uv_err_name_r(-error.code, name, sizeof(name));
  uv_strerror_r(-error.code, text, sizeof(text));

  const std::string message = std::string(name) + ": " + text + ", " + error.syscall + subject;
  Napi::Error thrown = Napi::Error::New(env, message);
  thrown.Set("code", Napi::String::New(env, name));
  thrown.Set("errno", Napi::Number::New(env, -error.code));
  thrown.Set("syscall", Napi::String::New(env, error.syscall));
  thrown.ThrowAsJavaScriptException();
  return env.Undefined();
}

}  // namespace agentrewind
