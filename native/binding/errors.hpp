// Throws a core error as JavaScript knows errors of the system.
#pragma once

#include <napi.h>

#include <string>

#include "../core/result.hpp"

namespace agentrewind {

/** An Error with code, errno and syscall; `subject` is what the call was about, as the message shows it. */
Napi::Error makeError(Napi::Env env, const Errno& error, const std::string& subject);

Napi::Value throwError(Napi::Env env, const Errno& error, const std::string& subject);

/** How messages show paths. */
inline std::string quoted(const std::string& path) { return " '" + path + "'"; }
inline std::string quoted(const std::string& from, const std::string& to) {
  return " '" + from + "' -> '" + to + "'";
}

}  // namespace agentrewind
