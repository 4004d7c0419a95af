// libFuzzer target for the decoders of Avro and Protobuf. The first byte chooses a schema, the rest is the message.
//   native/build.sh fuzz 600
// A message is refused with a path, or its text is valid JSON of limited depth and size.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "answers/text_buffer.hpp"
#include "errors.hpp"
#include "mapping/avro_decoder.hpp"
#include "mapping/protobuf_decoder.hpp"
#include "simdjson.h"

namespace {

using penstock::Spec;
using Dict = Spec::Dict;
using List = Spec::List;
using penstock::mapping::AvroSchema;
using penstock::mapping::ProtobufSchema;

constexpr std::size_t kDepth = 20, kBytes = 1 << 16;
constexpr std::size_t kLastValue = 1 << 10;  // what the value at the limit can add, besides its own bytes

void demand(bool holds) {
    if (!holds) std::abort();
}

AvroSchema avro() {
    List types{Dict{{"kind", "record"}, {"names", List{}}, {"types", List{}}}};
    List names, numbers;
    const auto field = [&](Spec type) {
        types.push_back(std::move(type));
        names.emplace_back("f" + std::to_string(names.size()));
        numbers.emplace_back(static_cast<std::uint64_t>(types.size() - 1));
    };
    for (const char* kind : {"boolean", "int", "long", "float", "double", "bytes", "string", "date", "time-millis",
                             "time-micros", "timestamp-millis", "timestamp-nanos", "local-timestamp-micros"})
        field(Dict{{"kind", kind}});
    field(Dict{{"kind", "decimal"}, {"scale", 3}});
    field(Dict{{"kind", "fixed-uuid"}, {"size", 16}});
    field(Dict{{"kind", "duration"}, {"size", 12}});
    field(Dict{{"kind", "enum"}, {"names", List{"A", "B"}}});
    types.push_back(Dict{{"kind", "null"}});
    const auto null = static_cast<std::uint64_t>(types.size() - 1);
    field(Dict{{"kind", "union"}, {"types", List{null, std::uint64_t{0}}}});  // the record itself
    field(Dict{{"kind", "array"}, {"types", List{null}}});
    field(Dict{{"kind", "map"}, {"types", List{std::uint64_t{1}}}});
    types[0] = Dict{{"kind", "record"}, {"names", names}, {"types", numbers}};
    return AvroSchema(types);
}

Spec field(const char* kind, int number, bool repeated, bool implicit, Spec type = {}, Spec oneof = {},
           bool map = false) {
    return Dict{{"kind", kind},
                {"number", number},
                {"name", "f" + std::to_string(number)},
                {"repeated", repeated},
                {"map", map},
                {"implicit", implicit},
                {"type", std::move(type)},
                {"oneof", std::move(oneof)}};
}

Spec message(List fields, int oneofs = 0, const char* kind = "message") {
    return Dict{{"kind", kind}, {"oneofs", oneofs}, {"fields", std::move(fields)}};
}

Spec enumeration(bool closed) {
    return Dict{
        {"kind", "enum"},
        {"closed", closed},
        {"values", List{Dict{{"number", 0}, {"text", "\"ZERO\""}}, Dict{{"number", 7}, {"text", "\"SEVEN\""}}}}};
}

ProtobufSchema protobuf() {
    List fields;
    int number = 0;
    for (const char* kind : {"double", "float", "int32", "int64", "uint32", "uint64", "sint32", "sint64", "fixed32",
                             "fixed64", "sfixed32", "sfixed64", "bool", "string", "bytes"}) {
        fields.push_back(field(kind, ++number, false, number % 2 == 0));
        fields.push_back(field(kind, ++number, true, false));
    }
    fields.push_back(field("enum", 40, true, false, 1));
    fields.push_back(field("enum", 41, false, false, 2));
    fields.push_back(field("message", 42, false, false, 0));
    fields.push_back(field("message", 43, true, false, 0));
    fields.push_back(field("group", 44, false, false, 0));
    fields.push_back(field("message", 45, true, false, 3, {}, true));
    fields.push_back(field("message", 46, true, false, 4, {}, true));
    fields.push_back(field("message", 47, false, false, 5));
    fields.push_back(field("message", 48, false, false, 6));
    fields.push_back(field("message", 49, false, false, 7));
    fields.push_back(field("string", 50, false, false, {}, 0));
    fields.push_back(field("message", 51, false, false, 0, 0));
    return ProtobufSchema(
        List{message(fields, 1), enumeration(false), enumeration(true),
             message(List{field("string", 1, false, true), field("message", 2, false, false, 0)}),
             message(List{field("int32", 1, false, true), field("enum", 2, false, false, 2)}),
             message(List{field("int64", 1, false, true), field("int32", 2, false, true)}, 0, "timestamp"),
             message(List{field("int64", 1, false, true), field("int32", 2, false, true)}, 0, "duration"),
             message(List{field("double", 1, false, false, {}, 0), field("message", 2, false, false, 7, 0)}, 1,
                     "transparent")});
}

template <class Decode>
void check(Decode decode, std::size_t size) {
    penstock::TextBuffer out;
    try {
        decode(out);
    } catch (const penstock::DataError& error) {
        demand(std::string_view(error.what()).starts_with('$'));
        return;
    }
    demand(out.size() <= kBytes + kLastValue + 6 * size);
    simdjson::dom::parser parser;
    const simdjson::padded_string text(out.text());
    demand(parser.parse(text).error() == simdjson::SUCCESS);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static const AvroSchema with_avro = avro();
    static const ProtobufSchema with_protobuf = protobuf();
    if (size == 0) return 0;
    const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
    const std::uint32_t choice = data[0] % 8;
    if (choice == 0)
        check([&](penstock::TextBuffer& out) { with_avro.decode(bytes, kDepth, kBytes, out); }, size);
    else
        check(
            [&](penstock::TextBuffer& out) {
                with_protobuf.decode(choice <= 2 ? 0 : choice, bytes, kDepth, kBytes, out);
            },
            size);
    return 0;
}
