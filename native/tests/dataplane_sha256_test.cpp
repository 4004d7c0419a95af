// The published vectors of FIPS 180-4's examples and of RFC 4231.
#include "dataplane/sha256.hpp"

#include <gtest/gtest.h>

#include <string>

namespace penstock::dataplane {
namespace {

std::span<const std::byte> bytes(const std::string& text) { return std::as_bytes(std::span(text)); }

std::string hex(const Digest& digest) {
    std::string text;
    for (const std::byte b : digest) {
        text += "0123456789abcdef"[std::to_integer<int>(b) >> 4];
        text += "0123456789abcdef"[std::to_integer<int>(b) & 15];
    }
    return text;
}

TEST(Sha256, GivesThePublishedDigests) {
    EXPECT_EQ(hex(sha256(bytes(""))), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    EXPECT_EQ(hex(sha256(bytes("abc"))), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    EXPECT_EQ(hex(sha256(bytes("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"))),
              "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    EXPECT_EQ(hex(sha256(bytes(std::string(1'000'000, 'a')))),
              "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, HmacGivesThePublishedDigests) {
    EXPECT_EQ(hex(hmac_sha256(bytes(std::string(20, '\x0b')), bytes("Hi There"))),
              "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
    EXPECT_EQ(hex(hmac_sha256(bytes("Jefe"), bytes("what do ya want for nothing?"))),
              "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
    EXPECT_EQ(hex(hmac_sha256(bytes(std::string(131, '\xaa')),
                              bytes("Test Using Larger Than Block-Size Key - Hash Key First"))),
              "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

TEST(Sha256, ComparesWholeDigests) {
    const Digest one = random_digest();
    Digest other = one;
    EXPECT_TRUE(equal(one, other));
    other[31] ^= std::byte{1};
    EXPECT_FALSE(equal(one, other));
    EXPECT_FALSE(equal(one, random_digest()));
}

}  // namespace
}  // namespace penstock::dataplane
