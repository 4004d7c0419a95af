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

#include "errors.hpp"
#include "mapping/json_writer.hpp"

namespace penstock::mapping {
namespace {

using Kind = AvroType::Kind;

constexpr std::size_t kMaxDecimalBytes = 512;
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

class Decoder : JsonWriter {
public:
    Decoder(const std::vector<AvroType>& types, std::string_view data, std::size_t max_depth, std::size_t max_bytes,
            TextBuffer& out)
        : JsonWriter(data, max_depth, max_bytes, out), types_(types) {}

    void run() {
        value(types_[0], nullptr);
        if (at_ != end_) fault(nullptr, std::to_string(end_ - at_) + " bytes follow the record");
    }

private:
    std::int64_t number(const Step* at) { return zigzag(varint(at)); }

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

    // ---- values
    void value(const AvroType& type, const Step* at) {
        check_size(at);
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

    std::size_t choice(std::size_t count, const char* what, const Step* at) {
        const std::int64_t found = number(at);
        if (found < 0 || static_cast<std::uint64_t>(found) >= count)
            fault(at, std::string("there is no ") + what + " number " + std::to_string(found) + "; the schema has " +
                          std::to_string(count));
        return static_cast<std::size_t>(found);
    }

    // ---- containers
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
        leave();
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
        leave();
    }

    // ---- logical types
    void date_text(std::int64_t days, const Step* at) {
        out_.append('"');
        date(days, at);
        out_.append('"');
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
};

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
