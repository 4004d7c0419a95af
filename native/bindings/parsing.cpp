// Bindings of the N-Triples and N-Quads reader; signatures in _native.pyi.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/variant.h>

#include <optional>
#include <string>
#include <variant>

#include "arrays.hpp"
#include "rdf/ntriples.hpp"
#include "unlocked.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace penstock {
namespace {

/// Columns as numpy arrays, created once.
struct ParsedQuads {
    nb::object subjects, predicates, objects, graphs, timestamps;
    nb::list bad;
    std::uint64_t bad_count = 0;
    std::uint64_t lines = 0;

    explicit ParsedQuads(QuadColumns&& columns)
        : subjects(nb::cast(to_numpy(std::move(columns.subjects)))),
          predicates(nb::cast(to_numpy(std::move(columns.predicates)))),
          objects(nb::cast(to_numpy(std::move(columns.objects)))),
          graphs(nb::cast(to_numpy(std::move(columns.graphs)))),
          timestamps(nb::cast(to_numpy(std::move(columns.timestamps)))),
          bad_count(columns.bad_count),
          lines(columns.lines) {
        for (const BadLine& line : columns.bad)
            bad.append(nb::make_tuple(line.line, nb::bytes(line.bytes.data(), line.bytes.size()),
                                      "column " + std::to_string(line.column) + ": " + line.reason));
    }
};

/// A dict represents a scope of few labels (one message); it is read before parsing and completed afterwards.
using Scope = std::variant<std::monostate, BlankScope*, nb::dict>;

ParsedQuads parse(Dictionary& dictionary, const nb::bytes& data, const ParseOptions& options, const Scope& scope) {
    BlankScope own;
    BlankScope* used = &own;
    if (const auto* given = std::get_if<BlankScope*>(&scope)) used = *given;
    const auto* labels = std::get_if<nb::dict>(&scope);
    if (labels != nullptr)
        for (const auto& [label, id] : *labels) own.set(nb::cast<std::string>(label), nb::cast<TermId>(id));
    const std::string_view document(data.c_str(), data.size());
    QuadColumns columns;
    {
        const Unlocked released;
        columns = parse_nquads(dictionary, document, options, *used);
    }
    if (labels != nullptr)
        for (const auto& [label, id] : own.nodes()) (*labels)[label.c_str()] = id;
    return ParsedQuads(std::move(columns));
}

}  // namespace
}  // namespace penstock

void bind_parsing(nb::module_& m) {
    using namespace penstock;
    nb::class_<BlankScope>(m, "BlankScope").def(nb::init<>()).def("__len__", [](const BlankScope& scope) {
        return scope.nodes().size();
    });
    nb::class_<ParsedQuads>(m, "ParsedQuads")
        .def_ro("subjects", &ParsedQuads::subjects)
        .def_ro("predicates", &ParsedQuads::predicates)
        .def_ro("objects", &ParsedQuads::objects)
        .def_ro("graphs", &ParsedQuads::graphs)
        .def_ro("timestamps", &ParsedQuads::timestamps)
        .def_ro("bad", &ParsedQuads::bad)
        .def_ro("bad_count", &ParsedQuads::bad_count)
        .def_ro("lines", &ParsedQuads::lines);
    m.def(
        "parse_nquads",
        [](Dictionary& dictionary, const nb::bytes& data, bool quads, bool timestamps, bool strict, std::size_t max_bad,
           const Scope& scope, bool keep, std::uint64_t first_line, std::size_t max_term_bytes) {
            ParseOptions options;
            options.quads = quads;
            options.timestamps = timestamps;
            options.strict = strict;
            options.max_bad = max_bad;
            options.max_term_bytes = max_term_bytes;
            options.first_line = first_line;
            options.lifetime = keep ? Lifetime::Permanent : Lifetime::Transient;
            return parse(dictionary, data, options, scope);
        },
        "dictionary"_a, "data"_a, nb::kw_only(), "quads"_a = true, "timestamps"_a = false, "strict"_a = true,
        "max_bad"_a = 1000, "scope"_a = nb::none(), "keep"_a = false, "first_line"_a = 1,
        "max_term_bytes"_a = std::size_t{16} << 20);
}
