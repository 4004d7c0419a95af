#include "term_tuples.hpp"

#include <string>
#include <unordered_map>

#include "errors.hpp"
#include "rdf/iri.hpp"
#include "rdf/language_tag.hpp"

namespace nb = nanobind;

namespace penstock {
namespace {

/// The UTF-8 encoding of a str, which owns it.
std::string_view utf8(nb::handle text) {
    Py_ssize_t size = 0;
    const char* data = PyUnicode_AsUTF8AndSize(text.ptr(), &size);
    if (data == nullptr) {
        if (!PyErr_ExceptionMatches(PyExc_UnicodeEncodeError)) nb::raise_python_error();
        PyErr_Clear();
        throw DataError("text with surrogates is no Unicode text");
    }
    return {data, static_cast<std::size_t>(size)};
}

/// All text in the dictionary is UTF-8, except for forged ids.
nb::object text_of(std::string_view bytes) {
    return nb::steal(PyUnicode_DecodeUTF8(bytes.data(), static_cast<Py_ssize_t>(bytes.size()), "replace"));
}

/// A cache of Python strings for datatypes and language tags, which repeat in a column.
class RepeatedTexts {
public:
    nb::object operator()(std::string_view bytes) {
        const auto [it, fresh] = texts_.try_emplace(std::string(bytes));
        if (fresh) it->second = text_of(bytes);
        return it->second;
    }

private:
    std::unordered_map<std::string, nb::object> texts_;
};

nb::object make_tuple(const TermView& term, RepeatedTexts& repeated) {
    if (term.kind == Kind::Unbound) return nb::none();
    return nb::make_tuple(static_cast<int>(term.kind), text_of(term.lexical), repeated(term.datatype),
                          repeated(term.lang));
}

}  // namespace

TermView term_view(int kind, std::string_view lexical, std::string_view datatype, std::string_view lang) {
    switch (kind) {
        case 1:
            return {Kind::Iri, lexical, {}, {}};
        case 2:
            return {Kind::Blank, lexical, {}, {}};
        case 3:
            return {Kind::Literal, lexical, datatype, lang};
        default:
            throw DataError("no kind of term is numbered " + std::to_string(kind));
    }
}

void check_term(const TermView& term) {
    const std::string_view iri = term.kind == Kind::Iri ? term.lexical : term.datatype;
    if (term.kind == Kind::Iri || (term.kind == Kind::Literal && term.lang.empty() && !iri.empty())) {
        if (const char* fault = iri_fault(iri))
            throw DataError("not an absolute IRI: <" + std::string(iri) + ">: " + fault);
    }
    if (term.kind != Kind::Literal) return;
    if (term.lang.empty() && term.datatype == kRdfLangString) throw DataError("rdf:langString needs a language tag");
    if (!term.lang.empty() && !is_language_tag(term.lang))
        throw DataError("not a well-formed language tag (BCP 47): " + std::string(term.lang));
}

nb::object term_tuple(const TermView& term) {
    RepeatedTexts texts;
    return make_tuple(term, texts);
}

nb::list decode(const TermTexts& terms, std::span<const TermId> ids) {
    terms.require(ids);
    RepeatedTexts texts;
    std::string scratch;
    nb::list out;
    for (const TermId id : ids) {
        if (id == kUnbound) {
            out.append(nb::none());
        } else {
            out.append(make_tuple(terms.view(id, scratch), texts));
        }
    }
    return out;
}

TermTuples::TermTuples(const nb::sequence& terms) : tuples_(nb::tuple(terms)) {
    views_.reserve(tuples_.size());
    for (const nb::handle item : tuples_) {
        if (!PyTuple_Check(item.ptr()) || PyTuple_GET_SIZE(item.ptr()) != 4)
            throw nb::type_error("a term is a tuple (kind, lexical, datatype, lang)");
        const nb::handle kind = PyTuple_GET_ITEM(item.ptr(), 0);
        std::string_view texts[3];
        for (int i = 0; i < 3; ++i) {
            const nb::handle text = PyTuple_GET_ITEM(item.ptr(), i + 1);
            if (!PyUnicode_Check(text.ptr())) throw nb::type_error("a term is a tuple (kind, lexical, datatype, lang)");
            texts[i] = utf8(text);
        }
        views_.push_back(term_view(nb::cast<int>(kind), texts[0], texts[1], texts[2]));
    }
}

void TermTuples::intern(Dictionary& dictionary, TermId* out) const {
    std::unordered_map<std::string_view, TermId> blanks;
    std::vector<TermView> others;
    others.reserve(views_.size());
    for (const TermView& term : views_)
        if (term.kind != Kind::Blank) others.push_back(term);
    std::vector<TermId> ids(others.size());
    dictionary.intern(others, ids.data());
    for (std::size_t i = 0, next = 0; i < views_.size(); ++i) {
        if (views_[i].kind != Kind::Blank) {
            out[i] = ids[next++];
            continue;
        }
        const auto [it, fresh] = blanks.try_emplace(views_[i].lexical, kUnbound);
        if (fresh) it->second = dictionary.fresh_blank();
        out[i] = it->second;
    }
}

}  // namespace penstock
