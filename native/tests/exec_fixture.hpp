// Runs plans over memory sources. Ids in these tests are IRIs by number.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <initializer_list>
#include <vector>

#include "exec/executor.hpp"
#include "memory_source.hpp"
#include "rdf/dictionary.hpp"

namespace penstock::test {

using Dict = Spec::Dict;
using List = Spec::List;
using Rows = std::vector<std::vector<TermId>>;

inline Spec id(TermId term) { return Dict{{"id", term}}; }
inline Spec var(std::uint64_t slot) { return Dict{{"var", slot}}; }
inline Spec ids(std::initializer_list<std::uint64_t> items) {
    List list;
    for (std::uint64_t item : items) list.emplace_back(item);
    return list;
}
inline Spec stored(std::initializer_list<std::uint64_t> graphs) { return Dict{{"src", 0}, {"graphs", ids(graphs)}}; }

/// JSON, for messages.
inline std::string show(const Spec& spec) {
    std::string text;
    if (spec.is_null()) return "null";
    if (spec.is_bool()) return spec.as_bool() ? "true" : "false";
    if (spec.is_int()) return std::to_string(spec.as_int());
    if (spec.is_string()) return '"' + spec.as_string() + '"';
    if (spec.is_list()) {
        for (const Spec& item : spec.as_list()) text += (text.empty() ? "" : ",") + show(item);
        return '[' + text + ']';
    }
    for (const auto& [name, value] : spec.as_dict()) text += (text.empty() ? "\"" : ",\"") + name + "\":" + show(value);
    return '{' + text + '}';
}

/// Builds nodes with running ids.
class Nodes {
public:
    Spec node(const char* op, Dict members = {}) {
        members.insert(members.begin(), {{"op", op}, {"id", static_cast<std::uint64_t>(next_++)}});
        return members;
    }
    Spec seed() { return node("seed"); }
    Spec scan(Spec in, Spec s, Spec p, Spec o, Spec dataset = List{stored({0})}) {
        return node("scan", {{"in", in}, {"s", s}, {"p", p}, {"o", o}, {"dataset", dataset}});
    }
    Spec scan_graph(Spec in, Spec s, Spec p, Spec o, std::uint64_t graph, Spec dataset) {
        return node("scan", {{"in", in}, {"s", s}, {"p", p}, {"o", o}, {"dataset", dataset}, {"graph", graph}});
    }
    Spec plan(std::uint64_t slots, Spec root, Spec seed = List{}, Spec subplans = List{}) {
        return Dict{{"slots", slots}, {"seed", seed}, {"root", root}, {"subplans", subplans}};
    }

private:
    std::uint64_t next_ = 1;
};

class ExecTest : public ::testing::Test {
protected:
    ExecTest() {
        for (TermId i = 1; i < 130; ++i)
            if (dictionary.intern({Kind::Iri, "urn:t:" + std::to_string(i), {}, {}}) != i)
                throw Error("tests name IRIs by number; the dictionary does not count from 1");
    }
    LabelTable labels;
    MemorySource graph{labels};
    std::vector<MemorySource> windows;
    Dictionary dictionary;
    Nodes n;
    std::size_t memory_limit = 0;

    Table run_table(const Plan& plan, const Table& seed, Profile* profile = nullptr,
                    exec::IndexedSeed* indexed = nullptr) {
        LocalTerms terms(dictionary);
        Budget budget(30.0, memory_limit);
        ExprContext context{terms, budget, 0, {}, {}, 0, {}, {}, {}};
        std::vector<const Source*> sources{&graph};
        for (const MemorySource& window : windows) sources.push_back(&window);
        RunInput input{&seed, sources, &labels, &context, profile};
        input.indexed_seed = indexed;
        return *plan.run(input);
    }
    /// Rows in the order of the answer.
    static Rows rows_of(const Table& table) {
        Rows rows(table.rows);
        for (std::size_t i = 0; i < table.rows; ++i)
            for (const Column& column : table.columns) rows[i].push_back(column[i]);
        return rows;
    }
    Rows run_ordered(const Spec& spec, const Table& seed = unit()) { return rows_of(run_table(Plan(spec), seed)); }
    /// Rows sorted: most operators promise no order.
    Rows run(const Spec& spec, const Table& seed = unit()) {
        Rows rows = run_ordered(spec, seed);
        std::sort(rows.begin(), rows.end());
        return rows;
    }
    static Table unit() {
        Table table;
        table.rows = 1;
        return table;
    }
    static Table seed_table(std::vector<Slot> slots, Rows rows) {
        Table table;
        table.slots = std::move(slots);
        table.columns.resize(table.slots.size());
        for (const auto& row : rows)
            for (std::size_t c = 0; c < row.size(); ++c) table.columns[c].push_back(row[c]);
        table.rows = rows.size();
        return table;
    }
};

}  // namespace penstock::test
