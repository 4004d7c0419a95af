#include "mapping/avro_decoder.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "answers/escapes.hpp"
#include "errors.hpp"
#include "simdjson.h"

namespace penstock::mapping {
namespace {

using Kind = AvroType::Kind;

constexpr std::size_t kMaxDecimalBytes = 512;
constexpr std::size_t kShownKey = 60;  // bytes of a map's key in an error
constexpr std::pair<const char*, Kind> kKinds[] = {
    {"null", Kind::Null},
    {"boolean", Kind::Boolean},
    {"int", Kind::Int},
    {"long", Kind::Long},
    {"float", Kind::Float},
    {"double", Kind::Double},
    {"bytes", Kind::Bytes},
    {"string", Kind::String},
    {"fixed", Kind::Fixed},
    {"enum", Kind::Enum},
    {"array", Kind::Array},
    {"map", Kind::Map},
    {"union", Kind::Union},
    {"record", Kind::Record},
    {"date", Kind::Date},
    {"time-millis", Kind::TimeMillis},
    {"time-micros", Kind::TimeMicros},
    {"timestamp-millis", Kind::TimestampMillis},
    {"timestamp-micros", Kind::TimestampMicros},
    {"timestamp-nanos", Kind::TimestampNanos},
    {"local-timestamp-millis", Kind::LocalMillis},
    {"local-timestamp-micros", Kind::LocalMicros},
    {"local-timestamp-nanos", Kind::LocalNanos},
    {"decimal", Kind::Decimal},
    {"fixed-decimal", Kind::FixedDecimal},
    {"fixed-uuid", Kind::FixedUuid},
    {"duration", Kind::Duration},
};

Kind kind_named(const std::string& name) {
    for (const auto& [known, kind] : kKinds)
        if (name == known) return kind;
    throw Error("avro: unknown kind '" + name + "'");
}

/// A step of the path to the current value: a member of `name`, or an element.
struct Step {
    const Step* up = nullptr;
    std::string_view name;
    std::uint64_t index = 0;
    bool is_element = false;
};

std::string path_to(const Step* at) {
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

class Decoder {
public:
    Decoder(const std::vector<AvroType>& types, std::string_view data, std::size_t max_depth, std::size_t max_bytes,
            TextBuffer& out)
        : types_(types),
          begin_(data.data()),
          at_(data.data()),
          end_(data.data() + data.size()),
          depth_left_(max_depth),
          limit_(out.size() + max_bytes),
          max_depth_(max_depth),
          out_(out) {}

    void run() {
        value(types_[0], nullptr);
        if (at_ != end_) fault(nullptr, std::to_string(end_ - at_) + " bytes follow the record");
    }

private:
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

    std::int64_t number(const Step* at) {
        std::uint64_t found = 0;
        for (unsigned shift = 0; shift < 70; shift += 7) {
            if (at_ == end_) fault(at, "the data end within a number");
            const auto byte = static_cast<unsigned char>(*at_++);
            if (shift == 63 && byte > 1) fault(at, "a number has more than 64 bits");
            found |= static_cast<std::uint64_t>(byte & 0x7FU) << shift;
            if ((byte & 0x80U) == 0) return static_cast<std::int64_t>((found >> 1U) ^ (~(found & 1U) + 1));
        }
        fault(at, "a number has more than 64 bits");
    }

    std::int64_t int_number(const Step* at) {
        const std::int64_t found = number(at);
        if (found < std::numeric_limits<std::int32_t>::min() || found > std::numeric_limits<std::int32_t>::max())
            fault(at, std::to_string(found) + " is not an int of 32 bits");
        return found;
    }

    std::string_view sized(const Step* at) {
        const std::int64_t size = number(at);
        if (size < 0) fault(at, "a negative length: " + std::to_string(size));
        return take(static_cast<std::uint64_t>(size), at);
    }

    template <class T>
    T little_endian(const Step* at) {
        const std::string_view bytes = take(sizeof(T), at);
        T found = 0;
        for (std::size_t i = sizeof(T); i-- > 0;)
            found = static_cast<T>((found << 8U) | static_cast<unsigned char>(bytes[i]));
        return found;
    }

    // ---- values
    void value(const AvroType& type, const Step* at) {
        if (out_.size() > limit_)
            fault(at, "the record is too large as JSON: it exceeds the limits decoded_kib and decoded_factor");
        switch (type.kind) {
            case Kind::Null:
                return out_.append("null");
            case Kind::Boolean:
                return boolean(at);
            case Kind::Int:
                return integer(int_number(at));
            case Kind::Long:
                return integer(number(at));
            case Kind::Float:
                return real(std::bit_cast<float>(little_endian<std::uint32_t>(at)));
            case Kind::Double:
                return real(std::bit_cast<double>(little_endian<std::uint64_t>(at)));
            case Kind::Bytes:
                return hexadecimal(sized(at));
            case Kind::String:
                return text(sized(at), at);
            case Kind::Fixed:
                return hexadecimal(take(type.size, at));
            case Kind::Enum:
                return out_.append(type.labels[choice(type.labels.size(), "symbol", at)]);
            case Kind::Array:
            case Kind::Map:
                return blocks(type, at);
            case Kind::Union:
                return value(types_[type.types[choice(type.types.size(), "branch", at)]], at);
            case Kind::Record:
                return record(type, at);
            case Kind::Date:
                return date_text(int_number(at), at);
            case Kind::TimeMillis:
                return time_text(int_number(at), 1'000, at);
            case Kind::TimeMicros:
                return time_text(number(at), 1'000'000, at);
            case Kind::TimestampMillis:
                return timestamp(number(at), 1'000, true, at);
            case Kind::TimestampMicros:
                return timestamp(number(at), 1'000'000, true, at);
            case Kind::TimestampNanos:
                return timestamp(number(at), 1'000'000'000, true, at);
            case Kind::LocalMillis:
                return timestamp(number(at), 1'000, false, at);
            case Kind::LocalMicros:
                return timestamp(number(at), 1'000'000, false, at);
            case Kind::LocalNanos:
                return timestamp(number(at), 1'000'000'000, false, at);
            case Kind::Decimal:
                return decimal(sized(at), type.scale, at);
            case Kind::FixedDecimal:
                return decimal(take(type.size, at), type.scale, at);
            case Kind::FixedUuid:
                return uuid(take(type.size, at));
            case Kind::Duration:
                return duration(at);
        }
    }

    void boolean(const Step* at) {
        const char byte = take(1, at)[0];
        if (byte != 0 && byte != 1) fault(at, "a boolean is 0 or 1");
        out_.append(byte == 1 ? "true" : "false");
    }

    void integer(std::int64_t found) {
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

    std::size_t choice(std::size_t count, const char* what, const Step* at) {
        const std::int64_t found = number(at);
        if (found < 0 || static_cast<std::uint64_t>(found) >= count)
            fault(at, std::string("there is no ") + what + " number " + std::to_string(found) + "; the schema has " +
                          std::to_string(count));
        return static_cast<std::size_t>(found);
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

    static constexpr std::string_view kUpper = "0123456789ABCDEF", kLower = "0123456789abcdef";
    void hex(char c, std::string_view digits) {
        out_.append(digits[static_cast<unsigned char>(c) >> 4U]);
        out_.append(digits[static_cast<unsigned char>(c) & 15U]);
    }

    // ---- containers
    void enter(const Step* at) {
        if (depth_left_ == 0)
            fault(at, "the record is nested more than " + std::to_string(max_depth_) + " deep (max_json_depth)");
        --depth_left_;
    }

    void record(const AvroType& type, const Step* at) {
        enter(at);
        out_.append('{');
        for (std::size_t i = 0; i < type.types.size(); ++i) {
            if (i > 0) out_.append(',');
            out_.append(type.labels[i]);
            const Step step{at, type.names[i]};
            value(types_[type.types[i]], &step);
        }
        out_.append('}');
        ++depth_left_;
    }

    /// Arrays and maps: blocks of items, the last of which is empty.
    void blocks(const AvroType& type, const Step* at) {
        enter(at);
        const bool is_map = type.kind == Kind::Map;
        const AvroType& item = types_[type.types[0]];
        out_.append(is_map ? '{' : '[');
        std::uint64_t index = 0;
        for (;;) {
            std::int64_t count = number(at);
            if (count == 0) break;
            if (count < 0) {
                if (count == std::numeric_limits<std::int64_t>::min()) fault(at, "a block has too many items");
                count = -count;
                number(at);  // the bytes of the block, for readers that skip it
            }
            for (std::int64_t i = 0; i < count; ++i, ++index) {
                if (index > 0) out_.append(',');
                Step step{at, {}, index, true};
                if (is_map) {
                    const std::string_view key = sized(at);
                    text(key, at);
                    out_.append(':');
                    step = {at, key};
                }
                value(item, &step);
            }
        }
        out_.append(is_map ? '}' : ']');
        ++depth_left_;
    }

    // ---- logical types
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

    void date_text(std::int64_t days, const Step* at) {
        out_.append('"');
        date(days, at);
        out_.append('"');
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

    void time_text(std::int64_t part, std::int64_t per_second, const Step* at) {
        if (part < 0 || part >= 86'400 * per_second) fault(at, "a time outside of the day");
        out_.append('"');
        time_of_day(static_cast<std::uint64_t>(part), static_cast<std::uint64_t>(per_second));
        out_.append('"');
    }

    void timestamp(std::int64_t part, std::int64_t per_second, bool utc, const Step* at) {
        const std::int64_t per_day = 86'400 * per_second;
        std::int64_t day = part / per_day, rest = part % per_day;
        if (rest < 0) {
            rest += per_day;
            --day;
        }
        out_.append('"');
        date(day, at);
        out_.append('T');
        time_of_day(static_cast<std::uint64_t>(rest), static_cast<std::uint64_t>(per_second));
        out_.append(utc ? "Z\"" : "\"");
    }

    /// `bytes`: the unscaled number in two's complement, from its highest byte.
    void decimal(std::string_view bytes, std::size_t scale, const Step* at) {
        if (bytes.size() > kMaxDecimalBytes)
            fault(at, "a decimal of more than " + std::to_string(kMaxDecimalBytes) + " bytes");
        const bool negative = !bytes.empty() && static_cast<unsigned char>(bytes[0]) >= 0x80;
        std::vector<std::uint32_t> limbs((bytes.size() + 3) / 4, negative ? 0xFFFFFFFFU : 0);  // from the lowest
        for (std::size_t i = 0; i < bytes.size(); ++i) {
            const std::size_t place = bytes.size() - 1 - i, shift = 8 * (place % 4);
            std::uint32_t& limb = limbs[place / 4];
            limb = (limb & ~(0xFFU << shift)) | static_cast<std::uint32_t>(static_cast<unsigned char>(bytes[i]))
                                                    << shift;
        }
        if (negative) {
            std::uint64_t carry = 1;
            for (std::uint32_t& limb : limbs) {
                carry += static_cast<std::uint32_t>(~limb);
                limb = static_cast<std::uint32_t>(carry);
                carry >>= 32U;
            }
        }
        std::string reversed;  // digits from the lowest
        while (!limbs.empty()) {
            std::uint64_t rest = 0;
            for (std::size_t i = limbs.size(); i-- > 0;) {
                rest = (rest << 32U) | limbs[i];
                limbs[i] = static_cast<std::uint32_t>(rest / 1'000'000'000);
                rest %= 1'000'000'000;
            }
            while (!limbs.empty() && limbs.back() == 0) limbs.pop_back();
            for (int i = 0; i < 9; ++i, rest /= 10) reversed += static_cast<char>('0' + rest % 10);
        }
        while (!reversed.empty() && reversed.back() == '0') reversed.pop_back();
        if (reversed.size() <= scale) reversed.append(scale + 1 - reversed.size(), '0');
        out_.append('"');
        if (negative) out_.append('-');
        for (std::size_t i = reversed.size(); i-- > 0;) {
            out_.append(reversed[i]);
            if (i == scale && scale > 0) out_.append('.');
        }
        out_.append('"');
    }

    void uuid(std::string_view bytes) {
        out_.append('"');
        for (std::size_t i = 0; i < bytes.size(); ++i) {
            if (i == 4 || i == 6 || i == 8 || i == 10) out_.append('-');
            hex(bytes[i], kLower);
        }
        out_.append('"');
    }

    /// Months, days and milliseconds.
    void duration(const Step* at) {
        const auto months = little_endian<std::uint32_t>(at), days = little_endian<std::uint32_t>(at),
                   ms = little_endian<std::uint32_t>(at);
        out_.append("\"P");
        if (months > 0) integer(months), out_.append('M');
        if (days > 0) integer(days), out_.append('D');
        if (ms > 0 || (months == 0 && days == 0)) {
            out_.append('T');
            integer(ms / 1'000);
            fraction(ms % 1'000, 1'000);
            out_.append('S');
        }
        out_.append('"');
    }

    const std::vector<AvroType>& types_;
    const char* begin_;
    const char* at_;
    const char* end_;
    std::size_t depth_left_;
    std::size_t limit_;
    std::size_t max_depth_;
    TextBuffer& out_;
};

std::string quoted(const std::string& name, std::string_view end) {
    TextBuffer made;
    made.append('"');
    append_escaped<JsonEscapes>(made, name);
    made.append('"');
    made.append(end);
    return std::string(made.text());
}

void check(const AvroType& type, const std::vector<AvroType>& all) {
    for (const std::uint32_t each : type.types) {
        if (each >= all.size()) throw Error("avro: there is no type " + std::to_string(each));
        if (type.kind == Kind::Union && all[each].kind == Kind::Union) throw Error("avro: a union contains a union");
    }
    const bool has_items = type.kind == Kind::Array || type.kind == Kind::Map;
    if (has_items && type.types.size() != 1) throw Error("avro: an array or a map has one type of items");
    if (type.kind == Kind::Record && type.types.size() != type.names.size())
        throw Error("avro: a record has a name for each field");
    if (type.kind == Kind::FixedUuid && type.size != 16) throw Error("avro: a UUID has 16 bytes");
    if (type.kind == Kind::Duration && type.size != 12) throw Error("avro: a duration has 12 bytes");
}

}  // namespace

AvroSchema::AvroSchema(const Spec& spec) {
    for (const Spec& each : spec.as_list()) {
        AvroType& type = types_.emplace_back();
        type.kind = kind_named(each.at("kind").as_string());
        if (const Spec* size = each.find("size")) type.size = size->as_int();
        if (const Spec* scale = each.find("scale")) type.scale = scale->as_int();
        if (const Spec* names = each.find("names"))
            for (const Spec& name : names->as_list()) {
                type.names.push_back(name.as_string());
                type.labels.push_back(quoted(name.as_string(), type.kind == Kind::Enum ? "" : ":"));
            }
        if (const Spec* types = each.find("types"))
            for (const Spec& number : types->as_list())
                type.types.push_back(static_cast<std::uint32_t>(number.as_int()));
    }
    if (types_.empty()) throw Error("avro: a schema has at least one type");
    for (const AvroType& type : types_) check(type, types_);
}

void AvroSchema::decode(std::string_view data, std::size_t max_depth, std::size_t max_bytes, TextBuffer& out) const {
    Decoder(types_, data, max_depth, max_bytes, out).run();
}

}  // namespace penstock::mapping
