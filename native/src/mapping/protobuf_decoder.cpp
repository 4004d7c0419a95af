#include "mapping/protobuf_decoder.hpp"

#include <algorithm>
#include <bit>
#include <limits>
#include <unordered_map>

#include "errors.hpp"
#include "mapping/json_writer.hpp"

namespace penstock::mapping {
namespace {

using Kind = ProtobufField::Kind;
using TypeKind = ProtobufType::Kind;

constexpr std::pair<const char*, Kind> kKinds[] = {
    {"double", Kind::Double},   {"float", Kind::Float},     {"int32", Kind::Int32},       {"int64", Kind::Int64},
    {"uint32", Kind::Uint32},   {"uint64", Kind::Uint64},   {"sint32", Kind::Sint32},     {"sint64", Kind::Sint64},
    {"fixed32", Kind::Fixed32}, {"fixed64", Kind::Fixed64}, {"sfixed32", Kind::Sfixed32}, {"sfixed64", Kind::Sfixed64},
    {"bool", Kind::Bool},       {"string", Kind::String},   {"bytes", Kind::Bytes},       {"enum", Kind::Enum},
    {"message", Kind::Message}, {"group", Kind::Group},
};
constexpr std::pair<const char*, TypeKind> kTypeKinds[] = {
    {"message", TypeKind::Message},     {"transparent", TypeKind::Transparent},
    {"timestamp", TypeKind::Timestamp}, {"duration", TypeKind::Duration},
    {"enum", TypeKind::Enum},
};

template <class Known>
auto kind_named(const Known& known, const std::string& name) {
    for (const auto& [each, kind] : known)
        if (name == each) return kind;
    throw Error("protobuf: unknown kind '" + name + "'");
}

enum class Wire : std::uint8_t { Varint = 0, Fixed64 = 1, Sized = 2, Group = 3, EndGroup = 4, Fixed32 = 5 };

Wire wire_of(Kind kind) {
    switch (kind) {
        case Kind::Double:
        case Kind::Fixed64:
        case Kind::Sfixed64:
            return Wire::Fixed64;
        case Kind::Float:
        case Kind::Fixed32:
        case Kind::Sfixed32:
            return Wire::Fixed32;
        case Kind::String:
        case Kind::Bytes:
        case Kind::Message:
            return Wire::Sized;
        case Kind::Group:
            return Wire::Group;
        default:
            return Wire::Varint;
    }
}

/// A value of a field in the data. Numbers are in `bits`, as they are on the wire.
struct Found {
    std::uint32_t field = 0;  // its place in the type
    std::uint32_t order = 0;
    bool is_packed = false;
    std::uint64_t bits = 0;
    std::string_view bytes;
};

/// The winner of a oneof: the field that was set last, since it was set after all others. It is valid for the message
/// with the number `scan`.
struct Chosen {
    std::uint32_t field = ProtobufField::kNone;
    std::uint32_t since = 0;
    std::uint64_t scan = 0;
};

class Decoder : JsonWriter {
public:
    Decoder(const std::vector<ProtobufType>& types, std::string_view data, std::size_t max_depth, std::size_t max_bytes,
            TextBuffer& out)
        : JsonWriter(data, max_depth, max_bytes, out), types_(types), all_(data) {}

    void run(std::uint32_t root) {
        found_.push_back({0, 0, false, 0, all_});
        message(types_[root], 0, 1, nullptr);
    }

private:
    // ---- the data of a message
    /// Appends the known values of a message to `found_`, ordered by their fields, and without values that another
    /// member of a oneof replaces. `first` and `last`: its bytes. (A message that occurs several times is merged, which
    /// equals the message of all bytes.)
    void scan(const ProtobufType& type, std::size_t first, std::size_t last, const Step* at) {
        const std::size_t begin = found_.size();
        ++scan_;
        if (chosen_.size() < type.oneofs) chosen_.resize(type.oneofs);
        std::uint32_t order = 0;
        bool sorted = true;
        for (std::size_t i = first; i < last; ++i) {
            at_ = found_[i].bytes.data();
            end_ = at_ + found_[i].bytes.size();
            while (at_ != end_) sorted &= field(type, begin, order, at);
        }
        if (!sorted)
            std::sort(found_.begin() + static_cast<std::ptrdiff_t>(begin), found_.end(),
                      [](const Found& a, const Found& b) {
                          return a.field != b.field ? a.field < b.field : a.order < b.order;
                      });
        if (type.oneofs > 0)
            found_.erase(std::remove_if(found_.begin() + static_cast<std::ptrdiff_t>(begin), found_.end(),
                                        [&](const Found& each) {
                                            const std::uint32_t oneof = type.fields[each.field].oneof;
                                            if (oneof == ProtobufField::kNone) return false;
                                            const Chosen& winner = chosen_[oneof];
                                            return winner.field != each.field || each.order < winner.since;
                                        }),
                         found_.end());
    }

    /// Reads one field. False if the values are no longer ordered by their fields.
    bool field(const ProtobufType& type, std::size_t begin, std::uint32_t& order, const Step* at) {
        const std::uint64_t tag = varint(at);
        const std::uint64_t number = tag >> 3U;
        const auto wire = static_cast<Wire>(tag & 7U);
        if (number == 0 || number > kLastNumber) fault(at, "there is no field number " + std::to_string(number));
        Found next;
        const std::string_view sized = payload(wire, number, next.bits, at);
        const ProtobufField* known = find(type, static_cast<std::uint32_t>(number));
        if (known == nullptr) return true;
        const Wire expected = wire_of(known->kind);
        next.is_packed =
            wire == Wire::Sized && known->is_repeated && expected != Wire::Sized && expected != Wire::Group;
        if (wire != expected && !next.is_packed) return true;  // an unknown field, as for other readers
        if (known->kind == Kind::Enum && !next.is_packed && is_unknown(types_[known->type], next.bits)) {
            has_unknown_ = true;
            return true;
        }
        next.bytes = sized;
        next.field = static_cast<std::uint32_t>(known - type.fields.data());
        next.order = order++;
        if (known->oneof != ProtobufField::kNone) {
            Chosen& winner = chosen_[known->oneof];
            if (winner.scan != scan_ || winner.field != next.field) winner = {next.field, next.order, scan_};
        }
        const bool sorted = found_.size() == begin || found_.back().field <= next.field;
        found_.push_back(next);
        return sorted;
    }

    /// Reads the value of a field, whether it is known or not.
    std::string_view payload(Wire wire, std::uint64_t number, std::uint64_t& bits, const Step* at) {
        switch (wire) {
            case Wire::Varint:
                bits = varint(at);
                return {};
            case Wire::Fixed64:
                bits = little_endian<std::uint64_t>(at);
                return {};
            case Wire::Fixed32:
                bits = little_endian<std::uint32_t>(at);
                return {};
            case Wire::Sized:
                return take(varint(at), at);
            case Wire::Group:
                return group(number, at);
            case Wire::EndGroup:
                fault(at, "the end of a group that has not begun");
        }
        fault(at, "there is no wire type " + std::to_string(static_cast<unsigned>(wire)));
    }

    /// Reads until the end of a group. Returns what is in it.
    std::string_view group(std::uint64_t number, const Step* at) {
        std::vector<std::uint64_t> open{number};
        const char* const begin = at_;
        const char* end = at_;
        while (!open.empty()) {
            end = at_;
            const std::uint64_t tag = varint(at);
            const auto wire = static_cast<Wire>(tag & 7U);
            if (wire == Wire::Group) {
                if (open.size() > max_depth_)
                    fault(at, "groups are nested more than " + std::to_string(max_depth_) + " deep (max_json_depth)");
                open.push_back(tag >> 3U);
            } else if (wire == Wire::EndGroup) {
                if (open.back() != tag >> 3U) fault(at, "the end of another group");
                open.pop_back();
            } else {
                std::uint64_t unused = 0;
                payload(wire, tag >> 3U, unused, at);
            }
        }
        return {begin, static_cast<std::size_t>(end - begin)};
    }

    static const ProtobufField* find(const ProtobufType& type, std::uint32_t number) {
        // Most schemas number their fields from 1 without holes.
        if (number <= type.by_number.size() && type.by_number[number - 1].first == number)
            return &type.fields[type.by_number[number - 1].second];
        const auto found = std::lower_bound(type.by_number.begin(), type.by_number.end(), std::pair{number, 0U});
        return found != type.by_number.end() && found->first == number ? &type.fields[found->second] : nullptr;
    }

    static const std::string* label(const ProtobufType& type, std::int32_t number) {
        const auto found = std::lower_bound(type.labels.begin(), type.labels.end(), number,
                                            [](const auto& each, std::int32_t n) { return each.first < n; });
        return found != type.labels.end() && found->first == number ? &found->second : nullptr;
    }

    static bool is_unknown(const ProtobufType& type, std::uint64_t bits) {
        return type.is_closed && label(type, static_cast<std::int32_t>(bits)) == nullptr;
    }

    // ---- values
    void message(const ProtobufType& type, std::size_t first, std::size_t last, const Step* at) {
        enter(at);
        const std::size_t begin = found_.size();
        scan(type, first, last, at);
        if (type.kind == TypeKind::Timestamp || type.kind == TypeKind::Duration)
            time(type, begin, at);
        else
            fields(type, begin, at);
        found_.resize(begin);
        leave();
    }

    void fields(const ProtobufType& type, std::size_t next, const Step* at) {
        const bool braces = type.kind == TypeKind::Message;
        bool empty = true;
        if (braces) out_.append('{');
        // Only the fields that are written: a type can have many more.
        for (auto always = type.always.begin(); next < found_.size() || always != type.always.end();) {
            const std::uint32_t i = next == found_.size()         ? *always
                                    : always == type.always.end() ? found_[next].field
                                                                  : std::min(found_[next].field, *always);
            if (always != type.always.end() && *always == i) ++always;
            const ProtobufField& each = type.fields[i];
            const std::size_t first = next;
            while (next < found_.size() && found_[next].field == i) ++next;
            if (!braces && !empty) continue;
            check_size(at);
            const Step step{at, each.name};
            const std::size_t before = out_.size();
            if (braces) {
                if (!empty) out_.append(',');
                out_.append(each.label);
            }
            const std::size_t begin = out_.size();
            const std::size_t all = found_.size();
            member(each, first, next, braces ? &step : at);
            found_.resize(all);
            if (braces && each.is_repeated && out_.size() == begin + 2)  // "[]" or "{}": as if it was not set
                out_.shorten(before);
            else
                empty = false;
        }
        if (braces)
            out_.append('}');
        else if (empty)
            out_.append("null");
    }

    void member(const ProtobufField& field, std::size_t first, std::size_t last, const Step* at) {
        if (field.is_map) return entries(field, first, last, at);
        if (field.is_repeated) return elements(field, first, last, at);
        if (first == last) return standard(field);
        if (field.kind == Kind::Message || field.kind == Kind::Group)
            return message(types_[field.type], first, last, at);
        one(field, last - 1, at);
    }

    void elements(const ProtobufField& field, std::size_t first, std::size_t last, const Step* at) {
        enter(at);
        out_.append('[');
        std::uint64_t index = 0;
        for (std::size_t i = first; i < last; ++i) {
            if (found_[i].is_packed) {
                packed(field, found_[i].bytes, index, at);
                continue;
            }
            if (index > 0) out_.append(',');
            const Step step{at, {}, index++, true};
            check_size(&step);
            one(field, i, &step);
        }
        out_.append(']');
        leave();
    }

    void packed(const ProtobufField& field, std::string_view bytes, std::uint64_t& index, const Step* at) {
        at_ = bytes.data();
        end_ = at_ + bytes.size();
        while (at_ != end_) {
            const Step step{at, {}, index, true};
            std::uint64_t bits = 0;
            payload(wire_of(field.kind), field.number, bits, &step);
            if (field.kind == Kind::Enum && is_unknown(types_[field.type], bits)) continue;
            check_size(&step);
            if (index++ > 0) out_.append(',');
            scalar(field, bits, {}, &step);
        }
    }

    /// A map: of entries with the same key, the last one counts.
    void entries(const ProtobufField& field, std::size_t first, std::size_t last, const Step* at) {
        enter(at);
        const ProtobufType& type = types_[field.type];
        struct Entry {
            std::string key;
            std::size_t place;
        };
        std::vector<Entry> winners;
        std::unordered_map<std::string, std::size_t> places;
        const std::size_t base = found_.size();
        for (std::size_t i = first; i < last; ++i) {
            const std::size_t begin = found_.size();
            has_unknown_ = false;
            scan(type, i, i + 1, at);
            const std::size_t size = out_.size();
            std::size_t keys = begin;
            while (keys < found_.size() && found_[keys].field == 0) ++keys;
            const Step step{at, "key"};
            if (keys == begin)
                standard(type.fields[0]);
            else
                scalar(type.fields[0], found_[keys - 1].bits, found_[keys - 1].bytes, &step);
            std::string key(out_.text().substr(size));
            out_.shorten(size);
            found_.resize(begin);
            if (has_unknown_) continue;  // a closed enum's unknown number makes the whole entry an unknown field
            const auto [known, is_new] = places.try_emplace(key, winners.size());
            if (is_new)
                winners.push_back({std::move(key), i});
            else
                winners[known->second].place = i;
        }
        out_.append('{');
        for (std::size_t i = 0; i < winners.size(); ++i) {
            if (i > 0) out_.append(',');
            const bool is_text = winners[i].key.starts_with('"');
            if (!is_text) out_.append('"');
            out_.append(winners[i].key);
            out_.append(is_text ? ":" : "\":");
            const Step step{
                at, is_text ? std::string_view(winners[i].key).substr(1, winners[i].key.size() - 2) : winners[i].key};
            check_size(&step);
            scan(type, winners[i].place, winners[i].place + 1, &step);
            std::size_t values = base;
            while (values < found_.size() && found_[values].field == 0) ++values;
            const ProtobufField& value = type.fields[1];
            const std::size_t all = found_.size();
            if (values == all && (value.kind == Kind::Message || value.kind == Kind::Group)) {
                found_.push_back({});
                message(types_[value.type], all, all + 1, &step);
            } else {
                member(value, values, all, &step);
            }
            found_.resize(base);
        }
        out_.append('}');
        leave();
    }

    void one(const ProtobufField& field, std::size_t place, const Step* at) {
        if (field.kind == Kind::Message || field.kind == Kind::Group)
            return message(types_[field.type], place, place + 1, at);
        scalar(field, found_[place].bits, found_[place].bytes, at);
    }

    void standard(const ProtobufField& field) {
        switch (field.kind) {
            case Kind::Double:
            case Kind::Float:
                return out_.append("0.0");
            case Kind::Bool:
                return out_.append("false");
            case Kind::String:
            case Kind::Bytes:
                return out_.append("\"\"");
            case Kind::Enum:
                return enumerated(types_[field.type], types_[field.type].first);
            default:
                return out_.append('0');
        }
    }

    void enumerated(const ProtobufType& type, std::int32_t number) {
        if (const std::string* found = label(type, number)) return out_.append(*found);
        integer(number);
    }

    void scalar(const ProtobufField& field, std::uint64_t bits, std::string_view bytes, const Step* at) {
        switch (field.kind) {
            case Kind::Double:
                return real(std::bit_cast<double>(bits));
            case Kind::Float:
                return real(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
            case Kind::Int32:
            case Kind::Sfixed32:
                return integer(static_cast<std::int32_t>(bits));
            case Kind::Int64:
            case Kind::Sfixed64:
                return integer(static_cast<std::int64_t>(bits));
            case Kind::Uint32:
            case Kind::Fixed32:
                return integer(static_cast<std::uint32_t>(bits));
            case Kind::Uint64:
            case Kind::Fixed64:
                return integer(bits);
            case Kind::Sint32:
                return integer(zigzag(static_cast<std::uint32_t>(bits)));
            case Kind::Sint64:
                return integer(zigzag(bits));
            case Kind::Bool:
                return out_.append(bits != 0 ? "true" : "false");
            case Kind::String:
                at_ = bytes.data();
                return text(bytes, at);
            case Kind::Bytes:
                return base64(bytes);
            case Kind::Enum:
                return enumerated(types_[field.type], static_cast<std::int32_t>(bits));
            case Kind::Message:
            case Kind::Group:
                return;  // not scalar
        }
    }

    /// A Timestamp or a Duration: the fields are the seconds and the nanoseconds.
    void time(const ProtobufType& type, std::size_t begin, const Step* at) {
        std::int64_t seconds = 0;
        std::int32_t nanos = 0;
        for (std::size_t i = begin; i < found_.size(); ++i) {
            if (found_[i].field == 0) seconds = static_cast<std::int64_t>(found_[i].bits);
            if (found_[i].field == 1) nanos = static_cast<std::int32_t>(found_[i].bits);
        }
        out_.append('"');
        if (type.kind == TypeKind::Timestamp)
            timestamp(seconds, nanos, at);
        else
            duration(seconds, nanos, at);
        out_.append('"');
    }

    void timestamp(std::int64_t seconds, std::int32_t nanos, const Step* at) {
        if (nanos < 0 || nanos >= kNanos) fault(at, "a timestamp has 0 to 999,999,999 nanoseconds");
        constexpr std::int64_t kDay = 86'400;
        std::int64_t day = seconds / kDay, rest = seconds % kDay;
        if (rest < 0) {
            rest += kDay;
            --day;
        }
        date(day, at);
        out_.append('T');
        time_of_day(static_cast<std::uint64_t>(rest * kNanos + nanos), kNanos);
        out_.append('Z');
    }

    void duration(std::int64_t seconds, std::int32_t nanos, const Step* at) {
        constexpr std::int64_t kMost = 315'576'000'000;
        if (seconds < -kMost || seconds > kMost || nanos <= -kNanos || nanos >= kNanos)
            fault(at, "a duration outside of its range");
        if ((seconds < 0 && nanos > 0) || (seconds > 0 && nanos < 0))
            fault(at, "the seconds and nanoseconds of a duration have the same sign");
        if (seconds < 0 || nanos < 0) out_.append('-');
        out_.append("PT");
        integer(seconds < 0 ? -seconds : seconds);
        fraction(static_cast<std::uint64_t>(nanos < 0 ? -nanos : nanos), kNanos);
        out_.append('S');
    }

    static constexpr std::int64_t kNanos = 1'000'000'000;
    static constexpr std::uint64_t kLastNumber = (std::uint64_t{1} << 29U) - 1;

    const std::vector<ProtobufType>& types_;
    std::string_view all_;
    std::vector<Found> found_;    // a stack: the values of the messages that are being written
    std::vector<Chosen> chosen_;  // the oneofs of the message that is being read
    std::uint64_t scan_ = 0;      // its number
    bool has_unknown_ = false;    // an unknown number of a closed enum, since this was last set
};

ProtobufField field_of(const Spec& spec) {
    ProtobufField field;
    field.kind = kind_named(kKinds, spec.at("kind").as_string());
    field.number = static_cast<std::uint32_t>(spec.at("number").as_int());
    field.name = spec.at("name").as_string();
    field.label = quoted(field.name, ":");
    field.is_repeated = spec.at("repeated").as_bool();
    field.is_map = spec.at("map").as_bool();
    field.is_implicit = spec.at("implicit").as_bool();
    if (const Spec* type = spec.find("type")) field.type = static_cast<std::uint32_t>(type->as_int());
    if (const Spec* oneof = spec.find("oneof")) field.oneof = static_cast<std::uint32_t>(oneof->as_int());
    return field;
}

void check(const ProtobufType& type, const std::vector<ProtobufType>& all) {
    for (const ProtobufField& field : type.fields) {
        const bool is_message = field.kind == Kind::Message || field.kind == Kind::Group;
        if (is_message || field.kind == Kind::Enum) {
            if (field.type >= all.size() || (all[field.type].kind == TypeKind::Enum) == is_message)
                throw Error("protobuf: the field " + field.name + " has another type");
            if (!is_message && all[field.type].labels.empty()) throw Error("protobuf: an enum has a value");
        }
        if (field.is_map && (!is_message || all[field.type].fields.size() != 2))
            throw Error("protobuf: the entries of a map have two fields");
        if (is_message && field.is_implicit) throw Error("protobuf: a message has presence");
        if (field.oneof != ProtobufField::kNone && field.oneof >= type.oneofs) throw Error("protobuf: no such oneof");
    }
    const bool is_time = type.kind == TypeKind::Timestamp || type.kind == TypeKind::Duration;
    if (is_time && type.fields.size() != 2) throw Error("protobuf: a time has two fields");
}

}  // namespace

ProtobufSchema::ProtobufSchema(const Spec& spec) {
    for (const Spec& each : spec.as_list()) {
        ProtobufType& type = types_.emplace_back();
        type.kind = kind_named(kTypeKinds, each.at("kind").as_string());
        if (type.kind == TypeKind::Enum) {
            type.is_closed = each.at("closed").as_bool();
            for (const Spec& value : each.at("values").as_list()) {
                const auto number = static_cast<std::int32_t>(static_cast<std::uint32_t>(value.at("number").as_int()));
                if (type.labels.empty()) type.first = number;
                type.labels.emplace_back(number, value.at("text").as_string());
            }
            // Of the names of a number, the first one counts.
            std::stable_sort(type.labels.begin(), type.labels.end(),
                             [](const auto& a, const auto& b) { return a.first < b.first; });
            continue;
        }
        type.oneofs = static_cast<std::uint32_t>(each.at("oneofs").as_int());
        for (const Spec& field : each.at("fields").as_list()) {
            type.by_number.emplace_back(static_cast<std::uint32_t>(field.at("number").as_int()), type.fields.size());
            type.fields.push_back(field_of(field));
            const ProtobufField& made = type.fields.back();
            if (made.is_implicit || (made.is_repeated && type.kind == TypeKind::Transparent))
                type.always.push_back(static_cast<std::uint32_t>(type.fields.size() - 1));
        }
        std::sort(type.by_number.begin(), type.by_number.end());
    }
    for (const ProtobufType& type : types_) check(type, types_);
}

void ProtobufSchema::decode(std::uint32_t root, std::string_view data, std::size_t max_depth, std::size_t max_bytes,
                            TextBuffer& out) const {
    if (root >= types_.size() || types_[root].kind == TypeKind::Enum) throw Error("protobuf: no such message type");
    Decoder(types_, data, max_depth, max_bytes, out).run(root);
}

}  // namespace penstock::mapping
