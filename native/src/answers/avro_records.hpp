// The evaluations of many queries as records in Avro with the wire format of schema registries (docs/kafka.md,
// "Records in Avro"): one record for each row of the answer of a SELECT, and one record for any other answer.
//
// A record consists of these parts: the head, a name, the fields of the instant, the error (null), and the answer. The
// head is the same for all records of a query: a zero byte, the id of the schema, and for a query set its name. The
// answer of a SELECT is the number of rows, the number of the row, and one cell for each variable.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "answers/evaluation_lines.hpp"
#include "answers/text_buffer.hpp"
#include "rdf/term_texts.hpp"

namespace penstock {

/// The type of the bound cells of a column.
enum class AvroCell : char { String = 's', Long = 'l', Double = 'd', Boolean = 'b' };

/// The parts that all records have in common, as encoded bytes: `head` precedes the name, and `instant` follows the
/// name. `cells`: the types of the columns of a SELECT.
struct AvroFrame {
    std::string_view head, instant;
    std::vector<AvroCell> cells;
};

/// The ends of records in a text, and the number of records of each member.
struct AvroRecords {
    std::vector<std::size_t> ends;
    std::vector<std::size_t> counts;
};

/// Appends the records of members. `members`: ascending numbers of `names`. LimitError if a term does not have the type
/// of its column.
AvroRecords append_avro_records(TextBuffer& out, const QueryNames& names, std::span<const TermId> members,
                                const AvroFrame& frame, const MemberRows& rows, const TermTexts& terms);

}  // namespace penstock
