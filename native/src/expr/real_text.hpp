// Spellings of xsd:double and xsd:float.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace penstock::expr {

/// Parses lexical forms of XSD 1.1 §3.3.5.1 (INF, +INF, -INF, NaN included), no surrounding space. Values out of range
/// become infinite or zero, as the lexical mapping specifies. False if the text is malformed.
bool parse_real(std::string_view text, double& out);
bool parse_real(std::string_view text, float& out);

/// Canonical form: the shortest digits that round-trip, as "1.0E1", "-2.5E-3", "0.0E0", "INF", "NaN".
std::string real_text(double value);
std::string real_text(float value);
/// The same, into a buffer of at least kRealText bytes; returns the length.
inline constexpr std::size_t kRealText = 32;
std::size_t write_real(double value, char* out);
std::size_t write_real(float value, char* out);

/// Cast to xsd:string (F&O §17.1.2): plain decimal notation for 1e-6 <= |v| < 1e6, otherwise canonical; zero is "0".
std::string real_cast_text(double value);
std::string real_cast_text(float value);

}  // namespace penstock::expr
