// SHA-256 by the OpenSSL that Node itself carries and exports to addons.
#pragma once

#include <openssl/evp.h>

#include <array>
#include <cstddef>
#include <cstdint>

namespace agentrewind {

using Sha256 = std::array<uint8_t, 32>;

/** False only where OpenSSL was built or configured without SHA-256. */
inline bool sha256(const void* bytes, size_t length, Sha256& digest) {
  return EVP_Digest(bytes, length, digest.data(), nullptr, EVP_sha256(), nullptr) == 1;
}

}  // namespace agentrewind
