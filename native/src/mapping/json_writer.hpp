// Writes JSON texts from messages in a binary format. The decoders of Avro and Protobuf share it (ADR 94).
#pragma once

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "answers/escapes.hpp"
#include "answers/text_buffer.hpp"
#include "errors.hpp"
#include "simdjson.h"

namespace penstock::mapping {

/// A step of the path to the current value: the member `name`, or an element.
struct Step {
    const Step* up = nullptr;
    std::string_view name;
    std::uint64_t index = 0;
    bool is_element = false;
};

inline std::string path_to(const Step* at) {
    constexpr std::size_t kShownKey = 60;  // bytes of a map's key in an error
    std::vector<const Step*> steps;
    for (; at != nullptr; at = at->up) steps.push_back(at);
    std::string text = "$";
    for (std::size_t i = steps.size(); i-- > 0;) {
        const Step& step = *steps[i];
        if (step.is_element) {
            text += '[' + std::to_string(step.index) + ']';
        } else {
            text += '.';
            text += step.name.substr(0, kShownKey);
        }
    }
    return text;
}

/// A name as a JSON text, followed by `end`.
inline std::string quoted(const std::string& name, std::string_view end) {
    TextBuffer made;
    made.append('"');
    append_escaped<JsonEscapes>(made, name);
    made.append('"');
    made.append(end);
    return std::string(made.text());
}

/// A position in the bytes of one message, and the text that is written. Errors are DataError, with the path of the
/// value and the byte.
class JsonWriter {
protected:
    JsonWriter(std::string_view data, std::size_t max_depth, std::size_t max_bytes, TextBuffer& out)
        : begin_(data.data()),
          at_(data.data()),
          end_(data.data() + data.size()),
          depth_left_(max_depth),
          limit_(out.size() + max_bytes),
          max_depth_(max_depth),
          out_(out) {}

    [[noreturn]] void fault(const Step* at, const std::string& reason) const {
        throw DataError(path_to(at) + ": " + reason + " (byte " + std::to_string(at_ - begin_) + ")");
    }

    std::size_t left() const { return static_cast<std::size_t>(end_ - at_); }

    std::string_view take(std::uint64_t bytes, const Step* at) {
        if (bytes > left())
            fault(at, std::to_string(bytes) + " bytes are expected, " + std::to_string(left()) + " are left");
        const std::string_view taken(at_, static_cast<std::size_t>(bytes));
        at_ += bytes;
        return taken;
    }

    std::uint64_t varint(const Step* at) {
        std::uint64_t found = 0;
        for (unsigned shift = 0; shift < 70; shift += 7) {
            if (at_ == end_) fault(at, "the data end within a number");
            const auto byte = static_cast<unsigned char>(*at_++);
            if (shift == 63 && byte > 1) fault(at, "a number has more than 64 bits");
            found |= static_cast<std::uint64_t>(byte & 0x7FU) << shift;
            if ((byte & 0x80U) == 0) return found;
        }
        fault(at, "a number has more than 64 bits");
    }

    static std::int64_t zigzag(std::uint64_t found) {
        return static_cast<std::int64_t>((found >> 1U) ^ (~(found & 1U) + 1));
    }

    template <class T>
    T little_endian(const Step* at) {
        const std::string_view bytes = take(sizeof(T), at);
        T found = 0;
        for (std::size_t i = sizeof(T); i-- > 0;)
            found = static_cast<T>((found << 8U) | static_cast<unsigned char>(bytes[i]));
        return found;
    }

    void check_size(const Step* at) const {
        if (out_.size() > limit_)
            fault(at, "the record is too large as JSON: it exceeds the limits decoded_kib and decoded_factor");
    }

    void enter(const Step* at) {
        if (depth_left_ == 0)
            fault(at, "the record is nested more than " + std::to_string(max_depth_) + " deep (max_json_depth)");
        --depth_left_;
    }

    void leave() { ++depth_left_; }

    // ---- values
    template <class Integer>
    void integer(Integer found) {
        char* const to = out_.room(24);
        out_.advance(static_cast<std::size_t>(std::to_chars(to, to + 24, found).ptr - to));
    }

    template <class Real>
    void real(Real found) {
        if (std::isnan(found)) return out_.append("\"NaN\"");
        if (std::isinf(found)) return out_.append(found > 0 ? "\"INF\"" : "\"-INF\"");
        char* const to = out_.room(40);
        const std::string_view made(to, static_cast<std::size_t>(std::to_chars(to, to + 32, found).ptr - to));
        out_.advance(made.size());
        if (made.find_first_of(".e") == std::string_view::npos) out_.append(".0");  // otherwise JSON has an integer
    }

    void text(std::string_view found, const Step* at) {
        if (!simdjson::validate_utf8(found.data(), found.size())) fault(at, "a string is not UTF-8");
        out_.append('"');
        append_escaped<JsonEscapes>(out_, found);
        out_.append('"');
    }

    void hexadecimal(std::string_view found) {
        out_.append('"');
        for (const char c : found) hex(c, kUpper);
        out_.append('"');
    }

    /// With padding (RFC 4648, section 4).
    void base64(std::string_view found) {
        static constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        out_.append('"');
        for (; !found.empty(); found.remove_prefix(std::min<std::size_t>(found.size(), 3))) {
            std::uint32_t bits = 0;
            for (std::size_t i = 0; i < 3; ++i)
                bits = bits << 8U | (i < found.size() ? static_cast<unsigned char>(found[i]) : 0U);
            for (std::size_t i = 0; i < 4; ++i)
                out_.append(i <= found.size() ? kDigits[bits >> (18 - 6 * i) & 63U] : '=');
        }
        out_.append('"');
    }

    static constexpr std::string_view kUpper = "0123456789ABCDEF", kLower = "0123456789abcdef";
    void hex(char c, std::string_view digits) {
        out_.append(digits[static_cast<unsigned char>(c) >> 4U]);
        out_.append(digits[static_cast<unsigned char>(c) & 15U]);
    }

    // ---- times
    void digits(std::uint64_t found, int width) {
        std::array<char, 20> made;
        for (int i = width; i-- > 0; found /= 10)
            made[static_cast<std::size_t>(i)] = static_cast<char>('0' + found % 10);
        out_.append({made.data(), static_cast<std::size_t>(width)});
    }

    void date(std::int64_t days, const Step* at) {
        constexpr std::int64_t kFirst = -719'162, kLast = 2'932'896;  // of the years 1 to 9999
        if (days < kFirst || days > kLast) fault(at, "a date outside of the years 1 to 9999");
        const std::chrono::year_month_day found{std::chrono::sys_days(std::chrono::days(static_cast<int>(days)))};
        digits(static_cast<std::uint64_t>(static_cast<int>(found.year())), 4);
        out_.append('-');
        digits(static_cast<unsigned>(found.month()), 2);
        out_.append('-');
        digits(static_cast<unsigned>(found.day()), 2);
    }

    /// The canonical form: a fraction without zeros at its end. `part`: the time of day in parts of a second.
    void time_of_day(std::uint64_t part, std::uint64_t per_second) {
        const std::uint64_t seconds = part / per_second;
        digits(seconds / 3'600, 2);
        out_.append(':');
        digits(seconds / 60 % 60, 2);
        out_.append(':');
        digits(seconds % 60, 2);
        fraction(part % per_second, per_second);
    }

    void fraction(std::uint64_t part, std::uint64_t per_second) {
        if (part == 0) return;
        int width = 0;
        for (std::uint64_t unit = per_second; unit > 1; unit /= 10) ++width;
        for (; part % 10 == 0; part /= 10) --width;
        out_.append('.');
        digits(part, width);
    }

    const char* begin_;
    const char* at_;
    const char* end_;
    std::size_t depth_left_;
    std::size_t limit_;
    std::size_t max_depth_;
    TextBuffer& out_;
};

}  // namespace penstock::mapping
