// Bindings of the dictionary; signatures in _native.pyi. Also translates the core's errors into those of
// penstock.errors.
#include <nanobind/nanobind.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>

#include <algorithm>
#include <exception>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "arrays.hpp"
#include "dataplane/plane.hpp"
#include "errors.hpp"
#include "rdf/dictionary.hpp"
#include "term_tuples.hpp"
#include "traverse.hpp"
#include "unlocked.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace penstock {
namespace {

void raise(const char* name, const std::exception& error) {
    const nb::object cls = nb::module_::import_("penstock.errors").attr(name);
    PyErr_SetString(cls.ptr(), error.what());
}

void raise(const dataplane::Error& error) {
    const nb::object cls = nb::module_::import_("penstock.errors").attr("DataPlaneError");
    const nb::object raised = cls(error.what(), dataplane::name_of(error.fault));
    PyErr_SetObject(cls.ptr(), raised.ptr());
}

void translate(const std::exception_ptr& pending, void*) {
    try {
        std::rethrow_exception(pending);
    } catch (const DataError& error) {
        raise("DataError", error);
    } catch (const LimitError& error) {
        raise("LimitError", error);
    } catch (const StorageError& error) {
        raise("StorageError", error);
    } catch (const dataplane::Error& error) {
        raise(error);
    } catch (const Error& error) {
        raise("PenstockError", error);
    }
}

IdsOut intern_many(Dictionary& dictionary, const nb::sequence& terms) {
    const TermTuples tuples(terms);
    std::vector<TermId> ids(tuples.size());
    {
        const Unlocked released;
        tuples.intern(dictionary, ids.data());
    }
    return to_numpy(std::move(ids));
}

IdsOut publish(LocalTerms& terms, const IdsIn& ids) {
    // Python has no const dictionaries. LocalTerms only guarantees that evaluations do not modify theirs.
    auto& dictionary = const_cast<Dictionary&>(terms.dictionary());
    std::vector<TermId> published;
    published.reserve(ids.size());
    for (const TermId id : view(ids)) published.push_back(terms.publish(id, dictionary));
    return to_numpy(std::move(published));
}

/// A TermSource over a Python object with `decode(ids)` and `find(terms)`, as in _native.pyi.
class PythonTerms final : public TermSource {
public:
    explicit PythonTerms(nb::object service) : service_(std::move(service)) {}
    ~PythonTerms() override {
        const nb::gil_scoped_acquire acquired;
        service_.reset();
    }
    void fetch(std::span<const TermId> ids, Dictionary& into) override {
        const nb::gil_scoped_acquire acquired;
        check_open();
        const nb::object asked = nb::cast(to_numpy(std::vector<TermId>(ids.begin(), ids.end())));
        const nb::object marked = nb::getattr(service_, "decode_marked", nb::none());
        if (marked.is_none()) {
            const TermTuples terms(nb::cast<nb::sequence>(service_.attr("decode")(asked)));
            into.adopt(ids, terms.views());
            return;
        }
        const auto found = nb::cast<std::pair<nb::sequence, ColumnIn<std::uint8_t>>>(marked(asked));
        const TermTuples terms(found.first);
        const auto& all = terms.views();
        if (terms.size() != ids.size() || found.second.size() != ids.size())
            throw DataError("a source of terms answered for another number of ids");
        std::vector<TermId> parts[2];
        std::vector<TermView> views[2];
        for (std::size_t i = 0; i < ids.size(); ++i) {
            const bool removable = found.second.data()[i] != 0;
            parts[removable].push_back(ids[i]);
            views[removable].push_back(all[i]);
        }
        into.adopt(parts[0], views[0]);
        if (!parts[1].empty()) into.adopt_removable(parts[1], views[1]);
    }
    void find(std::span<const TermView> terms, TermId* out) override {
        const nb::gil_scoped_acquire acquired;
        check_open();
        nb::list asked;
        for (const TermView& term : terms) asked.append(term_tuple(term));
        const auto found = nb::cast<IdsIn>(service_.attr("find")(asked));
        if (found.size() != terms.size()) throw DataError("a source of terms answered for another number of terms");
        std::copy_n(found.data(), found.size(), out);
    }

    /// The Python object, for the garbage collector.
    nb::object& held() { return service_; }

private:
    void check_open() const {
        if (!service_.is_valid()) throw DataError("the dictionary's source was collected");
    }
    nb::object service_;
};

nb::object* held_by(Dictionary& dictionary) {
    auto* const terms = dynamic_cast<PythonTerms*>(dictionary.source());
    return terms == nullptr ? nullptr : &terms->held();
}

IdsOut find_many(const Dictionary& dictionary, const nb::sequence& terms) {
    const TermTuples tuples(terms);
    std::vector<TermId> ids;
    ids.reserve(tuples.size());
    for (const TermView& term : tuples.views()) ids.push_back(dictionary.find(term));
    return to_numpy(std::move(ids));
}

ColumnOut<std::uint8_t> removable(Dictionary& dictionary, const IdsIn& ids) {
    std::vector<std::uint8_t> found(ids.size());
    dictionary.removable(ids.data(), ids.size(), found.data());
    return to_numpy(std::move(found));
}

IdsOut settle(const Dictionary& dictionary, const IdsIn& ids) {
    std::vector<TermId> settled(ids.data(), ids.data() + ids.size());
    dictionary.settle(settled.data(), settled.size());
    return to_numpy(std::move(settled));
}

void bind_dictionary(nb::module_& m) {
    m.def(
        "check_term",
        [](int kind, std::string_view lexical, std::string_view datatype, std::string_view lang) {
            check_term(term_view(kind, lexical, datatype, lang));
        },
        "kind"_a, "lexical"_a, "datatype"_a = "", "lang"_a = "");
    m.attr("PRIVATE_SLOTS") = kPrivateSlots;
    nb::class_<Dictionary::Lease>(m, "Lease");
    nb::class_<Dictionary>(m, "Dictionary", nb::type_slots(kTraversed<Dictionary, held_by>))
        .def(nb::init<>())
        .def(
            "intern",
            [](Dictionary& d, int kind, std::string_view lexical, std::string_view datatype, std::string_view lang) {
                return d.intern(term_view(kind, lexical, datatype, lang));
            },
            "kind"_a, "lexical"_a, "datatype"_a = "", "lang"_a = "")
        .def(
            "find",
            [](const Dictionary& d, int kind, std::string_view lexical, std::string_view datatype,
               std::string_view lang) { return d.find(term_view(kind, lexical, datatype, lang)); },
            "kind"_a, "lexical"_a, "datatype"_a = "", "lang"_a = "")
        .def("intern_many", &intern_many, "terms"_a)
        .def("find_many", &find_many, "terms"_a)
        .def(
            "adopt",
            [](Dictionary& d, const IdsIn& ids, const nb::sequence& terms) {
                d.adopt(view(ids), TermTuples(terms).views());
            },
            "ids"_a, "terms"_a)
        .def(
            "attach",
            [](Dictionary& d, nb::object service) { d.attach(std::make_shared<PythonTerms>(std::move(service))); },
            "service"_a)
        .def_prop_ro("partial", &Dictionary::partial)
        .def(
            "require", [](const Dictionary& d, const IdsIn& ids) { return d.require(ids.data(), ids.size()); }, "ids"_a)
        .def("settle", &settle, "ids"_a)
        .def("removable", &removable, "ids"_a)
        .def(
            "drop", [](Dictionary& d, const IdsIn& ids) { d.drop(ids.data(), ids.size()); }, "ids"_a)
        .def(
            "check", [](const Dictionary& d, const IdsIn& ids) { d.check(ids.data(), ids.size()); }, "ids"_a)
        .def("blank_count", &Dictionary::blank_count)
        .def("reserve_blanks", &Dictionary::reserve_blanks, "n"_a)
        .def("set_tick", &Dictionary::set_tick, "tick"_a)
        .def("tick", &Dictionary::tick)
        .def(
            "touch", [](Dictionary& d, const IdsIn& ids) { return d.touch(ids.data(), ids.size()); }, "ids"_a)
        .def(
            "keep", [](Dictionary& d, const IdsIn& ids) { d.keep(ids.data(), ids.size()); }, "ids"_a)
        .def("sweep", &Dictionary::sweep, "oldest_live"_a, nb::call_guard<Unlocked>())
        .def(
            "lease", [](Dictionary& d) { return new Dictionary::Lease(d); }, nb::rv_policy::take_ownership,
            nb::keep_alive<0, 1>())
        .def("size", &Dictionary::size)
        .def("bytes", &Dictionary::bytes)
        .def("live_bytes", &Dictionary::live_bytes)
        .def("save", &Dictionary::save, "path"_a, nb::call_guard<Unlocked>())
        .def("load", &Dictionary::load, "path"_a, nb::call_guard<Unlocked>());
}

void bind_local_terms(nb::module_& m) {
    nb::class_<TermTexts>(m, "TermTexts")
        .def("decode", [](const TermTexts& t, const IdsIn& ids) { return decode(t, view(ids)); }, "ids"_a);
    nb::class_<LocalTerms, TermTexts>(m, "LocalTerms")
        .def(nb::init<const Dictionary&>(), "dictionary"_a, nb::keep_alive<1, 2>())
        .def(
            "intern",
            [](LocalTerms& t, int kind, std::string_view lexical, std::string_view datatype, std::string_view lang) {
                return t.intern(term_view(kind, lexical, datatype, lang));
            },
            "kind"_a, "lexical"_a, "datatype"_a = "", "lang"_a = "")
        .def("size", &LocalTerms::size)
        .def(
            "settle",
            [](LocalTerms& t, const IdsIn& ids) {
                std::vector<TermId> settled(ids.data(), ids.data() + ids.size());
                t.settle(settled.data(), settled.size());
                return to_numpy(std::move(settled));
            },
            "ids"_a)
        .def("publish", &publish, "ids"_a);
}

}  // namespace
}  // namespace penstock

void bind_parsing(nb::module_& m);

void bind_terms(nb::module_& m) {
    nb::register_exception_translator(penstock::translate);
    penstock::bind_dictionary(m);
    penstock::bind_local_terms(m);
    bind_parsing(m);
}
