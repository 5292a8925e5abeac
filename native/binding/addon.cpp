// The addon's entry. It keeps no state, so any number of environments and workers can load it.
#include "register.hpp"

static Napi::Object initialize(Napi::Env env, Napi::Object exports) {
  agentrewind::registerRead(env, exports);
  agentrewind::registerChange(env, exports);
  agentrewind::registerWriters(env, exports);
  agentrewind::registerScanner(env, exports);
  agentrewind::registerRestore(env, exports);
  agentrewind::registerLayers(env, exports);
  agentrewind::registerBpf(env, exports);
  return exports;
}

NODE_API_MODULE(agentrewind, initialize)
