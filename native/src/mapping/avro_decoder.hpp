// Decodes Avro binary data (Avro 1.12, "Binary Encoding") to JSON texts, by a schema.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "answers/text_buffer.hpp"
#include "spec.hpp"

namespace penstock::mapping {

/// A type of a schema. Types refer to one another by their places in the schema, so a type may contain itself.
struct AvroType {
    enum class Kind : std::uint8_t {
        Null,
        Boolean,
        Int,
        Long,
        Float,
        Double,
        Bytes,
        String,
        Fixed,
        Enum,
        Array,
        Map,
        Union,
        Record,
        // logical types
        Date,
        TimeMillis,
        TimeMicros,
        TimestampMillis,
        TimestampMicros,
        TimestampNanos,
        LocalMillis,
        LocalMicros,
        LocalNanos,
        Decimal,       // on bytes
        FixedDecimal,  // on fixed
        FixedUuid,
        Duration,
    };
    Kind kind = Kind::Null;
    std::size_t size = 0;              // of a fixed, in bytes
    std::size_t scale = 0;             // of a decimal
    std::vector<std::string> names;    // fields of a record, or symbols of an enum
    std::vector<std::string> labels;   // the names as members of a JSON object: quoted, with a colon
    std::vector<std::uint32_t> types;  // of the fields, of the branches, of the items, or of the values
};

/// Immutable, and therefore thread-safe. Type 0 is the type of the data.
class AvroSchema {
public:
    /// `spec`: the types, as libs/penstock/mapping/encodings/avro_schema.py passes them. Error if it is invalid.
    explicit AvroSchema(const Spec& spec);

    /// Appends the JSON text of one datum. DataError, with the path and the byte, if the data does not match the
    /// schema, if it has more than `max_depth` levels of nesting, or if the JSON text would have more than `max_bytes`.
    ///
    /// A value of a union is the value of its branch. Bytes and fixed are texts in hexadecimal. Values of logical types
    /// are texts in the lexical forms of XSD. The numbers that JSON does not have are also texts: "NaN", "INF", "-INF".
    void decode(std::string_view data, std::size_t max_depth, std::size_t max_bytes, TextBuffer& out) const;

private:
    std::vector<AvroType> types_;
};

}  // namespace penstock::mapping
