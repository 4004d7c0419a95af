// CompiledUpdate and CompiledUpdates: see _native.pyi.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "edge_labels.hpp"
#include "errors.hpp"
#include "exec/budget.hpp"
#include "foreign.hpp"
#include "query/compiled_update.hpp"
#include "query/normalized_text.hpp"
#include "store/store.hpp"
#include "traverse.hpp"
#include "unlocked.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace penstock {
namespace {

using TermIn = std::tuple<std::optional<std::size_t>, bool, std::string, std::string, std::string>;
using DegreeIn = std::tuple<std::size_t, TermId, TermId, int, std::uint64_t>;

/// A compiled update, and how often it may be executed before its plan must be checked.
struct CountedUpdate {
    query::CompiledUpdate update;
    std::uint64_t left = 0;
    std::uint64_t last_use = 0;
};

void make_update(CountedUpdate* self, const Plan& plan, std::vector<std::pair<std::size_t, std::string>> fixed,
                 const std::vector<TermIn>& terms, std::vector<std::size_t> seed, std::vector<std::size_t> constants,
                 std::vector<query::Place> removed, std::vector<query::Place> added,
                 const std::vector<std::uint64_t>& columns, const std::vector<DegreeIn>& degrees,
                 std::vector<std::pair<std::size_t, TermId>> expected) {
    query::UpdateParts parts;
    parts.fixed = std::move(fixed);
    for (const auto& [constant, is_iri, lexical, datatype, lang] : terms)
        parts.terms.push_back({constant, is_iri ? Kind::Iri : Kind::Literal, lexical, datatype, lang});
    parts.seed = std::move(seed);
    parts.template_constants = std::move(constants);
    parts.removed = std::move(removed);
    parts.added = std::move(added);
    for (const std::uint64_t slot : columns) parts.columns.push_back(static_cast<Slot>(slot));
    for (const auto& [term, graph, predicate, direction, neighbours] : degrees)
        parts.degrees.push_back({term, graph, predicate, direction == 0 ? Dir::Out : Dir::In, neighbours});
    parts.expected = std::move(expected);
    new (self) CountedUpdate{{plan, std::move(parts)}};
}

QuadSpans columns_of(const query::QuadRows& rows) { return {rows.s, rows.p, rows.o, rows.g}; }

class CompiledUpdates {
public:
    CompiledUpdates(Store& store, Dictionary& dictionary, nb::object foreign, double timeout_s,
                    std::size_t memory_bytes, std::size_t limit)
        : store_(store),
          dictionary_(dictionary),
          foreign_(std::move(foreign)),
          timeout_s_(timeout_s),
          memory_bytes_(memory_bytes),
          limit_(limit) {}

    void add(const std::string& pattern, nb::handle_t<CountedUpdate> object, std::uint64_t uses) {
        auto& update = nb::cast<CountedUpdate&>(object);
        update.left = uses;
        update.last_use = ++executions_;
        Updates& updates = by_pattern_[pattern];
        const auto same = std::ranges::find_if(
            updates, [&](const Held& held) { return held.update->update.has_same_texts(update.update); });
        if (same != updates.end()) {
            *same = {&update, nb::borrow(object)};
            return;
        }
        updates.push_back({&update, nb::borrow(object)});
        if (++size_ > limit_) evict();
    }

    /// Nothing if the text has no compiled update, or if this one cannot be used now.
    std::optional<std::pair<std::uint64_t, std::uint64_t>> execute(const nb::str& text, std::int64_t now_ms,
                                                                   std::uint64_t random_seed) {
        if (by_pattern_.empty()) return std::nullopt;
        Py_ssize_t size = 0;
        const char* const data = PyUnicode_AsUTF8AndSize(text.ptr(), &size);
        if (data == nullptr) {  // a lone surrogate
            PyErr_Clear();
            return std::nullopt;
        }
        const auto normalized = query::normalize({data, static_cast<std::size_t>(size)});
        if (!normalized) return std::nullopt;
        const auto found = by_pattern_.find(normalized->pattern);
        if (found == by_pattern_.end()) return std::nullopt;
        const auto held = std::ranges::find_if(
            found->second, [&](const Held& each) { return each.update->update.is_of(normalized->constants); });
        if (held == found->second.end() || held->update->left == 0) return std::nullopt;
        CountedUpdate& update = *held->update;
        --update.left;
        update.last_use = ++executions_;
        const nb::object retained = held->object;  // another thread can replace the update
        return run(update.update, normalized->constants, now_ms, random_seed);
    }

    nb::object& foreign() { return foreign_; }

private:
    struct Held {
        CountedUpdate* update;
        nb::object object;
    };
    using Updates = std::vector<Held>;

    std::optional<std::pair<std::uint64_t, std::uint64_t>> run(const query::CompiledUpdate& update,
                                                               std::span<const std::string_view> constants,
                                                               std::int64_t now_ms, std::uint64_t random_seed) {
        LocalTerms terms(dictionary_);
        Budget budget(timeout_s_, memory_bytes_);
        ExprContext context{terms, budget, now_ms, {}, {}, random_seed};
        if (foreign_.is_valid() && !foreign_.is_none()) context.foreign = foreign_function(foreign_, budget);
        const Unlocked released;
        // Created before the view: it then also retains the constants, which are looked up afterwards.
        const Dictionary::Lease lease(dictionary_);
        auto view = store_.view();
        const auto change = update.evaluate(constants, {*view, store_.labels(), dictionary_, context});
        view.reset();  // a commit without readers needs no append log
        if (!change) return std::nullopt;
        return commit(*change);
    }

    /// The numbers of added and removed quads.
    std::pair<std::uint64_t, std::uint64_t> commit(const query::QuadChange& change) {
        const auto& [removed, added] = change;
        for (const auto* column : {&added.s, &added.p, &added.o, &added.g})
            dictionary_.keep(column->data(), column->size());
        const auto more = make_edges(store_.labels(), columns_of(added));
        if (removed.s.empty()) {
            if (more.empty()) return {0, 0};
            const std::uint64_t before = store_.edge_count();
            store_.commit(more, {});
            return {store_.edge_count() - before, 0};
        }
        const Changed changed = store_.change(known_edges(store_.labels(), columns_of(removed)), more, {});
        return {changed.added, changed.removed};
    }

    /// Removes the update that was not used for the longest time.
    void evict() {
        auto oldest_of = by_pattern_.end();
        Updates::iterator oldest;
        for (auto of = by_pattern_.begin(); of != by_pattern_.end(); ++of)
            for (auto each = of->second.begin(); each != of->second.end(); ++each)
                if (oldest_of == by_pattern_.end() || each->update->last_use < oldest->update->last_use) {
                    oldest_of = of;
                    oldest = each;
                }
        oldest->update->left = 0;
        oldest_of->second.erase(oldest);
        if (oldest_of->second.empty()) by_pattern_.erase(oldest_of);
        --size_;
    }

    Store& store_;
    Dictionary& dictionary_;
    nb::object foreign_;
    double timeout_s_;
    std::size_t memory_bytes_, limit_;
    std::size_t size_ = 0;
    std::uint64_t executions_ = 0;
    std::unordered_map<std::string, Updates> by_pattern_;
};

nb::object* held_by(CompiledUpdates& updates) { return &updates.foreign(); }

}  // namespace
}  // namespace penstock

void bind_updates(nb::module_& m) {
    using namespace penstock;
    nb::class_<CountedUpdate>(m, "CompiledUpdate", "A prepared update with its generic plan.")
        .def("__init__", &make_update, "plan"_a, "fixed"_a, "terms"_a, "seed"_a, "constants"_a, "removed"_a, "added"_a,
             "columns"_a, "degrees"_a, "expected"_a, nb::keep_alive<1, 2>())
        .def_prop_ro(
            "left", [](const CountedUpdate& update) { return update.left; },
            "How often the update can still be executed.");
    nb::class_<CompiledUpdates>(m, "CompiledUpdates", "The compiled updates of an engine.",
                                nb::type_slots(kTraversed<CompiledUpdates, held_by>))
        .def(nb::init<Store&, Dictionary&, nb::object, double, std::size_t, std::size_t>(), "store"_a, "dictionary"_a,
             "foreign"_a, "timeout_s"_a, "memory_bytes"_a, "limit"_a, nb::keep_alive<1, 2>(), nb::keep_alive<1, 3>())
        .def("add", &CompiledUpdates::add, "pattern"_a, "update"_a, "uses"_a)
        .def("execute", &CompiledUpdates::execute, "text"_a, "now_ms"_a, "random_seed"_a);
}
