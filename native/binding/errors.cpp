// Names and messages are libuv's, so that they read like those of node:fs.
#include "errors.hpp"

#include <uv.h>

namespace agentrewind {

Napi::Error makeError(Napi::Env env, const Errno& error, const std::string& subject) {
  char name[64];
  char text[128];
  uv_err_name_r(-error.code, name, sizeof(name));
  uv_strerror_r(-error.code, text, sizeof(text));

  const std::string message = std::string(name) + ": " + text + ", " + error.syscall + subject;
  Napi::Error made = Napi::Error::New(env, message);
  made.Set("code", Napi::String::New(env, name));
  made.Set("errno", Napi::Number::New(env, -error.code));
  made.Set("syscall", Napi::String::New(env, error.syscall));
  return made;
}

Napi::Value throwError(Napi::Env env, const Errno& error, const std::string& subject) {
  makeError(env, error, subject).ThrowAsJavaScriptException();
  return env.Undefined();
}

}  // namespace agentrewind
