#include "dataplane/sha256.hpp"

#include <sys/random.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <vector>

#include "errors.hpp"

namespace penstock::dataplane {

namespace {

constexpr std::size_t kBlock = 64;

constexpr std::array<std::uint32_t, 64> kRound = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

using State = std::array<std::uint32_t, 8>;

std::uint32_t big_endian(const std::byte* bytes) {
    std::uint32_t value = 0;
    for (int i = 0; i < 4; ++i) value = value << 8 | std::to_integer<std::uint32_t>(bytes[i]);
    return value;
}

void compress(State& state, const std::byte* block) {
    std::array<std::uint32_t, 64> w;
    for (std::size_t i = 0; i < 16; ++i) w[i] = big_endian(block + 4 * i);
    for (std::size_t i = 16; i < 64; ++i) {
        const std::uint32_t s0 = std::rotr(w[i - 15], 7) ^ std::rotr(w[i - 15], 18) ^ (w[i - 15] >> 3);
        const std::uint32_t s1 = std::rotr(w[i - 2], 17) ^ std::rotr(w[i - 2], 19) ^ (w[i - 2] >> 10);
        w[i] = w[i - 16] + s0 + w[i - 7] + s1;
    }
    auto [a, b, c, d, e, f, g, h] = state;
    for (std::size_t i = 0; i < 64; ++i) {
        const std::uint32_t s1 = std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25);
        const std::uint32_t t1 = h + s1 + ((e & f) ^ (~e & g)) + kRound[i] + w[i];
        const std::uint32_t s0 = std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22);
        const std::uint32_t t2 = s0 + ((a & b) ^ (a & c) ^ (b & c));
        h = g, g = f, f = e, e = d + t1, d = c, c = b, b = a, a = t1 + t2;
    }
    const State add = {a, b, c, d, e, f, g, h};
    for (std::size_t i = 0; i < state.size(); ++i) state[i] += add[i];
}

}  // namespace

Digest sha256(std::span<const std::byte> message) {
    State state = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    const std::size_t whole = message.size() / kBlock * kBlock;
    for (std::size_t at = 0; at < whole; at += kBlock) compress(state, message.data() + at);
    // The rest, a one bit, zeros, and the length in bits: one or two blocks.
    std::array<std::byte, 2 * kBlock> tail{};
    const std::size_t rest = message.size() - whole;
    std::copy_n(message.begin() + static_cast<std::ptrdiff_t>(whole), rest, tail.begin());
    tail[rest] = std::byte{0x80};
    const std::size_t end = rest + 9 <= kBlock ? kBlock : 2 * kBlock;
    const std::uint64_t bits = std::uint64_t{message.size()} * 8;
    for (std::size_t i = 0; i < 8; ++i) tail[end - 1 - i] = static_cast<std::byte>(bits >> (8 * i));
    for (std::size_t at = 0; at < end; at += kBlock) compress(state, tail.data() + at);
    Digest digest;
    for (std::size_t i = 0; i < digest.size(); ++i)
        digest[i] = static_cast<std::byte>(state[i / 4] >> (8 * (3 - i % 4)));
    return digest;
}

Digest hmac_sha256(std::span<const std::byte> key, std::span<const std::byte> message) {
    std::array<std::byte, kBlock> padded{};
    if (key.size() > kBlock) {
        const Digest digest = sha256(key);
        std::copy(digest.begin(), digest.end(), padded.begin());
    } else {
        std::copy(key.begin(), key.end(), padded.begin());
    }
    const auto hash = [&](std::byte pad, std::span<const std::byte> rest) {
        std::vector<std::byte> bytes(kBlock + rest.size());
        std::transform(padded.begin(), padded.end(), bytes.begin(), [&](std::byte b) { return b ^ pad; });
        std::copy(rest.begin(), rest.end(), bytes.begin() + kBlock);
        return sha256(bytes);
    };
    return hash(std::byte{0x5c}, hash(std::byte{0x36}, message));
}

bool equal(const Digest& a, const Digest& b) {
    std::byte difference{0};
    for (std::size_t i = 0; i < a.size(); ++i) difference |= a[i] ^ b[i];
    return difference == std::byte{0};
}

Digest random_digest() {
    Digest digest;
    if (::getrandom(digest.data(), digest.size(), 0) != static_cast<ssize_t>(digest.size()))
        throw StorageError("the kernel gives no random bytes");
    return digest;
}

}  // namespace penstock::dataplane
