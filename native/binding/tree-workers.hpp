// A scanned tree to and from its image, on Node's own threads.
#pragma once

#include <memory>
#include <string>

#include <napi.h>

#include "scanner-state.hpp"

namespace agentrewind {

/** Resolves to the bytes written at `offset` of the file, 0 when there is no tree. */
Napi::Value saveInBackground(Napi::Env env, std::shared_ptr<const Node> tree, int fd, int64_t offset);

/** Resolves to whether the image was taken up. */
Napi::Value loadInBackground(Napi::Env env, std::shared_ptr<ScannerState> state, std::string image, int64_t unsettledFromNs);

}  // namespace agentrewind
