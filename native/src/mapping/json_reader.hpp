// Reads JSON texts into trees that contain only the values to which a program refers. simdjson parses and validates the
// whole text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "mapping/program.hpp"

namespace penstock::mapping {

enum class ValueType : std::uint8_t { Null, True, False, Integer, Real, String, Array, Object };

/// A JSON value. `text`: the text of a number as in the message, or the content of a string.
struct Value {
    ValueType type = ValueType::Null;
    std::uint32_t name = Names::kNone;  // of a member
    std::uint32_t first = 0;            // the elements, or the members that the program names, in the order of names
    std::uint32_t count = 0;
    std::string_view text;
};

class JsonReader {
public:
    explicit JsonReader(const Program& program);
    ~JsonReader();
    JsonReader(const JsonReader&) = delete;
    JsonReader& operator=(const JsonReader&) = delete;

    /// The value of a text: an object or an array. It is valid until the next call. Throws Declined if the text is not
    /// JSON, or if it is one of the rare texts that Python's JSON reader reads differently.
    const Value& read(std::string_view text);

    std::span<const Value> children(const Value& value) const { return {values_.data() + value.first, value.count}; }
    /// The member of an object, or nullptr.
    const Value* member(const Value& object, std::uint64_t name) const;

private:
    struct Parser;
    template <class Json>
    void add(Json json, std::uint32_t name, std::size_t depth, bool keep);
    void scalar(std::string_view token, std::uint32_t name, bool keep);
    void close(ValueType type, std::uint32_t name, std::size_t from);

    const Program& program_;
    std::unique_ptr<Parser> parser_;
    std::vector<Value> values_;
    std::vector<Value> open_;  // children of containers that are not closed
    Value root_;
};

}  // namespace penstock::mapping
