#include "rdf/iri.hpp"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <string>

#include "rdf/utf8.hpp"

namespace penstock {
namespace {

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_hexadecimal(char c) { return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }

/// Parts of an IRI, as bits of kAllowed.
enum Part : unsigned char { kRegName = 1, kUserInfo = 2, kPath = 4, kQuery = 8, kFragment = 16 };

constexpr std::array<unsigned char, 128> allowed_bytes() {
    std::array<unsigned char, 128> allowed{};
    const auto allow = [&](std::string_view bytes, unsigned parts) {
        for (const char c : bytes) allowed[static_cast<unsigned char>(c)] |= static_cast<unsigned char>(parts);
    };
    constexpr unsigned kAll = kRegName | kUserInfo | kPath | kQuery | kFragment;
    allow("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~", kAll);  // iunreserved
    allow("!$&'()*+,;=", kAll);                                                         // sub-delims
    allow(":", kUserInfo | kPath | kQuery | kFragment);
    allow("@/", kPath | kQuery | kFragment);
    allow("?", kQuery | kFragment);
    return allowed;
}
constexpr std::array<unsigned char, 128> kAllowed = allowed_bytes();

bool is_private(char32_t c) { return (c >= 0xE000 && c <= 0xF8FF) || (c >= 0xF0000 && (c & 0xFFFF) <= 0xFFFD); }

const char* part_fault(std::string_view text, Part part) {
    const char* end = text.data() + text.size();
    for (const char* at = text.data(); at != end;) {
        const auto byte = static_cast<unsigned char>(*at);
        if (byte < 0x80 && (kAllowed[byte] & part) != 0) {
            ++at;
        } else if (byte == '%') {
            if (end - at < 3 || !is_hexadecimal(at[1]) || !is_hexadecimal(at[2]))
                return "a '%' without two hexadecimal digits";
            at += 3;
        } else {
            const char32_t c = next_code_point(at, end);
            if (c < 0x80 || c == kInvalidCodePoint || (!is_iri_character(c) && !(part == kQuery && is_private(c))))
                return "a character that may not stand there";
        }
    }
    return nullptr;
}

/// The content of brackets `[…]`: an IPv6 address, or an address of a later version.
bool is_ip_literal(std::string_view address) {
    if (!address.empty() && (address[0] == 'v' || address[0] == 'V')) {
        const std::size_t dot = address.find('.');
        if (dot == std::string_view::npos || dot < 2 || dot + 1 == address.size()) return false;
        const std::string_view rest = address.substr(dot + 1);
        return std::all_of(address.begin() + 1, address.begin() + static_cast<std::ptrdiff_t>(dot), is_hexadecimal) &&
               std::all_of(rest.begin(), rest.end(), [](char c) {
                   return static_cast<unsigned char>(c) < 0x80 &&
                          (kAllowed[static_cast<unsigned char>(c)] & kUserInfo) != 0;
               });
    }
    std::array<unsigned char, sizeof(in6_addr)> bytes;
    return address.size() < 46 && ::inet_pton(AF_INET6, std::string(address).c_str(), bytes.data()) == 1;
}

/// [ iuserinfo "@" ] ihost [ ":" port ]
const char* authority_fault(std::string_view authority) {
    if (const std::size_t at = authority.find('@'); at != std::string_view::npos) {
        if (const char* fault = part_fault(authority.substr(0, at), kUserInfo)) return fault;
        authority.remove_prefix(at + 1);
    }
    std::string_view port;
    if (!authority.empty() && authority[0] == '[') {
        const std::size_t close = authority.find(']');
        if (close == std::string_view::npos || !is_ip_literal(authority.substr(1, close - 1)))
            return "an address in brackets that is none";
        port = authority.substr(close + 1);
        if (!port.empty() && port[0] != ':') return "an address in brackets with something behind it";
    } else {
        const std::size_t colon = std::min(authority.find(':'), authority.size());
        if (const char* fault = part_fault(authority.substr(0, colon), kRegName)) return fault;
        port = authority.substr(colon);
    }
    if (!port.empty() && !std::all_of(port.begin() + 1, port.end(), is_digit)) return "a port that is no number";
    return nullptr;
}

}  // namespace

bool is_iri_character(char32_t c) {
    if (c < 0x10000) return (c >= 0xA0 && c <= 0xD7FF) || (c >= 0xF900 && c <= 0xFDCF) || (c >= 0xFDF0 && c <= 0xFFEF);
    return c < 0xF0000 && (c & 0xFFFF) <= 0xFFFD && !(c >= 0xE0000 && c <= 0xE0FFF);
}

const char* iri_fault(std::string_view iri) {
    std::size_t scheme = 0;
    while (scheme < iri.size() &&
           (is_letter(iri[scheme]) ||
            (scheme > 0 && (is_digit(iri[scheme]) || iri[scheme] == '+' || iri[scheme] == '-' || iri[scheme] == '.'))))
        ++scheme;
    if (scheme == 0 || scheme == iri.size() || iri[scheme] != ':') return "a scheme and a colon must come first";
    std::string_view rest = iri.substr(scheme + 1);
    if (rest.starts_with("//")) {
        rest.remove_prefix(2);
        const std::size_t end = std::min(rest.find_first_of("/?#"), rest.size());
        if (const char* fault = authority_fault(rest.substr(0, end))) return fault;
        rest.remove_prefix(end);
    }
    const std::size_t hash = std::min(rest.find('#'), rest.size());
    if (hash < rest.size()) {
        if (const char* fault = part_fault(rest.substr(hash + 1), kFragment)) return fault;
        rest = rest.substr(0, hash);
    }
    const std::size_t question = std::min(rest.find('?'), rest.size());
    if (question < rest.size()) {
        if (const char* fault = part_fault(rest.substr(question + 1), kQuery)) return fault;
    }
    return part_fault(rest.substr(0, question), kPath);
}

}  // namespace penstock
