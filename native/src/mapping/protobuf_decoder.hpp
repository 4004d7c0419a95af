// Decodes messages of Protocol Buffers (protobuf.dev, "Encoding") to JSON texts, by the types of a schema.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "answers/text_buffer.hpp"
#include "spec.hpp"

namespace penstock::mapping {

struct ProtobufField {
    enum class Kind : std::uint8_t {
        Double,
        Float,
        Int32,
        Int64,
        Uint32,
        Uint64,
        Sint32,
        Sint64,
        Fixed32,
        Fixed64,
        Sfixed32,
        Sfixed64,
        Bool,
        String,
        Bytes,
        Enum,
        Message,
        Group,
    };
    static constexpr std::uint32_t kNone = ~std::uint32_t{0};

    Kind kind = Kind::Bool;
    bool is_repeated = false;
    bool is_map = false;       // then the type is that of the entries, with the fields 1 (key) and 2 (value)
    bool is_implicit = false;  // without presence: a value that is not in the data is the default value
    std::uint32_t number = 0;
    std::uint32_t type = 0;  // of an enum or of a message: its place in the schema
    std::uint32_t oneof = kNone;
    std::string name;
    std::string label;  // the name as a member of a JSON object: quoted, with a colon
};

/// A message type or an enum. Types refer to one another by their places in the schema, so a type may contain itself.
struct ProtobufType {
    enum class Kind : std::uint8_t {
        Message,
        Transparent,  // a message that is written as the value of its only field that is set
        Timestamp,
        Duration,
        Enum,
    };
    Kind kind = Kind::Message;
    std::vector<ProtobufField> fields;
    std::vector<std::pair<std::uint32_t, std::uint32_t>> by_number;  // sorted: number, place in `fields`
    std::vector<std::uint32_t> always;  // the places of the fields that are written even if they are not set
    std::uint32_t oneofs = 0;
    std::vector<std::pair<std::int32_t, std::string>> labels;  // of an enum, sorted by number: JSON texts
    std::int32_t first = 0;                                    // the default value of an enum
    bool is_closed = false;                                    // an enum whose unknown numbers are unknown fields
};

/// Immutable, and therefore thread-safe.
class ProtobufSchema {
public:
    /// `spec`: the types, as libs/penstock/mapping/encodings/protobuf_schema.py passes them. Error if it is invalid.
    explicit ProtobufSchema(const Spec& spec);

    std::size_t size() const { return types_.size(); }

    /// Appends the JSON text of one message of type `root`, a message type. DataError, with the path and the byte, if
    /// the data is not well-formed, if it has more than `max_depth` levels of nesting, or if the JSON text would have
    /// more than `max_bytes`.
    ///
    /// The members of an object are the fields in the order of the schema, with the names of the schema. Fields that
    /// are not set are left out, except for fields without presence. Integers of 64 bits are JSON numbers. Bytes are
    /// texts in Base64. Timestamps and durations are texts in the lexical forms of XSD. The numbers that JSON does not
    /// have are also texts: "NaN", "INF", "-INF".
    void decode(std::uint32_t root, std::string_view data, std::size_t max_depth, std::size_t max_bytes,
                TextBuffer& out) const;

private:
    std::vector<ProtobufType> types_;
};

}  // namespace penstock::mapping
