// Bindings of the index of keys; signatures in _native.pyi.
#include <nanobind/nanobind.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "arrays.hpp"
#include "rdf/key_index.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace penstock {
namespace {

/// Calls `each(row, key)` for the keys in columns, and returns the numbers that it returns.
template <class Each>
IdsOut for_each_key(const KeyIndex& index, const std::vector<IdsIn>& columns, Each each) {
    if (columns.size() != index.width()) throw nb::value_error("a key has one column for each of its ids");
    const std::size_t rows = columns[0].size();
    for (const IdsIn& column : columns)
        if (column.size() != rows) throw nb::value_error("keys in columns of unequal length");
    std::vector<std::uint64_t> numbers(rows);
    std::vector<TermId> key(index.width());
    for (std::size_t row = 0; row < rows; ++row) {
        for (std::size_t i = 0; i < key.size(); ++i) key[i] = columns[i].data()[row];
        numbers[row] = each(row, key.data());
    }
    return to_numpy(std::move(numbers));
}

IdsOut put(KeyIndex& index, const std::vector<IdsIn>& columns, const IdsIn& numbers) {
    if (!columns.empty() && columns[0].size() != numbers.size()) throw nb::value_error("a key has one number");
    return for_each_key(index, columns,
                        [&](std::size_t row, const TermId* key) { return index.put(key, numbers.data()[row]); });
}

}  // namespace
}  // namespace penstock

void bind_keys(nb::module_& m) {
    using namespace penstock;
    nb::class_<KeyIndex>(m, "KeyIndex")
        .def(nb::init<std::size_t>(), "width"_a)
        .def("__len__", &KeyIndex::size)
        .def("bytes", &KeyIndex::bytes)
        .def(
            "find",
            [](const KeyIndex& index, const std::vector<IdsIn>& keys) {
                return for_each_key(index, keys, [&](std::size_t, const TermId* key) { return index.find(key); });
            },
            "keys"_a)
        .def("put", &put, "keys"_a, "numbers"_a)
        .def(
            "remove",
            [](KeyIndex& index, const std::vector<IdsIn>& keys) {
                return for_each_key(index, keys, [&](std::size_t, const TermId* key) { return index.remove(key); });
            },
            "keys"_a);
}
