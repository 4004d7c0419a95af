// Functions of expressions that are implemented in Python.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include <span>
#include <string>
#include <tuple>
#include <utility>

#include "exec/budget.hpp"
#include "rdf/dictionary.hpp"
#include "term_tuples.hpp"

namespace penstock {

/// A function for ExprContext::foreign. The callable receives the seconds that the evaluation has left. Called without
/// the GIL, by the thread that evaluates.
inline auto foreign_function(nanobind::object callable, const Budget& budget) {
    using TermTuple = std::tuple<int, std::string, std::string, std::string>;
    return [callable = std::move(callable), &budget](const std::string& name, std::span<const TermId> arguments,
                                                     LocalTerms& terms) -> TermId {
        nanobind::gil_scoped_acquire acquired;
        nanobind::object result = callable(name, decode(terms, arguments), budget.seconds_left());
        if (result.is_none()) return kUnbound;
        auto [kind, lexical, datatype, lang] = nanobind::cast<TermTuple>(result);
        return terms.intern(term_view(kind, lexical, datatype, lang));
    };
}

}  // namespace penstock
