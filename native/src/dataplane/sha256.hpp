// SHA-256 (FIPS 180-4) and HMAC (RFC 2104), with which two nodes prove to each other that they hold the same secret.
// Implemented here because it is the only cryptography in the core, and a library would be a dependency of every wheel.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace penstock::dataplane {

using Digest = std::array<std::byte, 32>;

Digest sha256(std::span<const std::byte> message);
Digest hmac_sha256(std::span<const std::byte> key, std::span<const std::byte> message);
/// Compares in constant time, independently of the position of a difference.
bool equal(const Digest& a, const Digest& b);
/// From the kernel's generator. StorageError if that fails.
Digest random_digest();

}  // namespace penstock::dataplane
