// Bindings of normalized texts and of templates; signatures in _native.pyi.
#include <nanobind/nanobind.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <span>
#include <stdexcept>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "arrays.hpp"
#include "query/normalized_text.hpp"
#include "query/quad_templates.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace penstock {
namespace {

nb::object text_of(std::string_view utf8) {
    return nb::steal(PyUnicode_FromStringAndSize(utf8.data(), static_cast<Py_ssize_t>(utf8.size())));
}

nb::object normalized(const nb::str& text) {
    Py_ssize_t size = 0;
    const char* const data = PyUnicode_AsUTF8AndSize(text.ptr(), &size);
    if (data == nullptr) {  // a lone surrogate
        PyErr_Clear();
        return nb::none();
    }
    const auto found = query::normalize({data, static_cast<std::size_t>(size)});
    if (!found) return nb::none();
    auto constants = nb::steal<nb::tuple>(PyTuple_New(static_cast<Py_ssize_t>(found->constants.size())));
    for (std::size_t i = 0; i < found->constants.size(); ++i)
        PyTuple_SET_ITEM(constants.ptr(), static_cast<Py_ssize_t>(i), text_of(found->constants[i]).release().ptr());
    return nb::make_tuple(text_of(found->pattern), constants);
}

using QuadsOut = std::tuple<IdsOut, IdsOut, IdsOut, IdsOut>;

QuadsOut to_columns(query::QuadRows&& rows) {
    return {to_numpy(std::move(rows.s)), to_numpy(std::move(rows.p)), to_numpy(std::move(rows.o)),
            to_numpy(std::move(rows.g))};
}

std::tuple<QuadsOut, QuadsOut> instances(const std::vector<query::Place>& removed,
                                         const std::vector<query::Place>& added, const std::vector<TermId>& constants,
                                         const std::vector<IdsIn>& columns, std::size_t rows, TermId stored) {
    std::vector<std::span<const TermId>> views;
    views.reserve(columns.size());
    for (const IdsIn& column : columns) {
        if (column.size() != rows) throw nb::value_error("a column has one id per solution");
        views.push_back(view(column));
    }
    const query::Solutions solutions{constants, views, rows};
    return {to_columns(query::instances(removed, solutions, stored)),
            to_columns(query::instances(added, solutions, stored))};
}

}  // namespace
}  // namespace penstock

void bind_query(nb::module_& m) {
    m.def("normalized", &penstock::normalized, "text"_a);
    m.def("instances", &penstock::instances, "removed"_a, "added"_a, "constants"_a, "columns"_a, "rows"_a, "stored"_a);
}
