// Runs a program on messages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "mapping/csv_reader.hpp"
#include "mapping/json_reader.hpp"
#include "mapping/mapped_batch.hpp"
#include "mapping/program.hpp"

namespace penstock::mapping {

/// Not thread-safe.
class Mapper {
public:
    Mapper(const Program& program, MappedBatch& batch);

    /// Adds the events of a message. `time`: the time of the message; nullopt if the message has no time. `position`:
    /// the position of the message in the batch. A message is mapped or declined as a whole.
    void map(std::string_view message, std::optional<std::int64_t> time, std::uint32_t position);

private:
    using TermIndex = MappedBatch::TermIndex;
    /// A JSON value, or a row of CSV.
    struct Record {
        const Value* value;
        std::size_t row;
    };

    // ---- messages
    void map_json(std::string_view message, std::uint32_t position);
    void map_lines(std::string_view message, std::uint32_t position);
    void map_rows(std::string_view message, std::uint32_t position);
    void event(const Record& record, std::uint32_t position, std::size_t bytes);
    std::int64_t event_time(const Record& record) const;
    void rule(const Rule& rule, const Record& record);
    void statement(const Statement& statement, const Record& record, TermIndex subject);
    void triple(TermIndex subject, TermIndex predicate, TermIndex object);

    // ---- values
    const Value* find(const Value& from, const Path& path) const;
    std::vector<const Value*> all(const Value& from, const Path& path) const;
    std::optional<Value> single(const Part& part, const Record& record) const;
    std::vector<Value> plural(const Part& part, const Record& record) const;

    // ---- terms
    /// Calls `take` for each value of a term: a value of the record, or a joined text.
    template <class Take>
    void values(const Term& term, const Record& record, const Take& take);
    template <class Take>
    void combinations(const Term& term, const Record& record, const Take& take);
    /// Adds the terms to `out`.
    void terms(const Term& term, const Record& record, std::vector<TermIndex>& out);
    std::optional<TermView> view(const Term& term, const Value& value, const Record& record);
    std::optional<TermView> literal(const Term& term, const Value& value, const Record& record);
    TermView natural(const Value& value);
    std::string_view iri(const Term& term, std::string_view text);
    /// The lexical form of the first term; nullopt if there is no term.
    std::optional<std::string_view> first(const Term& term, const Record& record);
    std::string_view copied(std::string_view text);
    TermIndex fresh();

    const Program& program_;
    MappedBatch& batch_;
    JsonReader json_;
    CsvReader csv_;
    std::optional<std::int64_t> time_;  // of the message
    std::string time_text_;
    std::size_t fresh_ = 0;  // fresh blank nodes of the event
    std::size_t left_ = 0;   // bytes that the triples of the event may still have
    std::vector<TermIndex> predicates_, objects_;
    std::string joined_;
};

}  // namespace penstock::mapping
