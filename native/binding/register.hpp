// The groups of functions that make up the addon.
#pragma once

#include <napi.h>

namespace agentrewind {

void registerRead(Napi::Env env, Napi::Object exports);
void registerLayers(Napi::Env env, Napi::Object exports);
void registerBpf(Napi::Env env, Napi::Object exports);
void registerScanner(Napi::Env env, Napi::Object exports);
void registerWriters(Napi::Env env, Napi::Object exports);
void registerChange(Napi::Env env, Napi::Object exports);
void registerRestore(Napi::Env env, Napi::Object exports);

}  // namespace agentrewind
