// libFuzzer target for the N-Triples and N-Quads reader. The first byte chooses options, the rest is the document.
//   native/build.sh fuzz 600
// Whatever is taken must survive being written and read again: the same ids, row for row.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "errors.hpp"
#include "rdf/ntriples.hpp"

namespace {

using penstock::BlankScope;
using penstock::Dictionary;
using penstock::Kind;
using penstock::ParseOptions;
using penstock::QuadColumns;
using penstock::TermId;
using penstock::TermView;

void append_quoted(std::string& out, std::string_view text) {
    out += '"';
    for (const char c : text) {
        if (c == '"' || c == '\\') out += '\\';
        if (c == '\n') {
            out += "\\n";
        } else if (c == '\r') {
            out += "\\r";
        } else {
            out += c;
        }
    }
    out += '"';
}

void append_term(std::string& out, const Dictionary& dictionary, BlankScope& scope, TermId id) {
    std::string scratch;
    const TermView term = dictionary.view(id, scratch);
    if (term.kind == Kind::Iri) {
        out.append("<").append(term.lexical).append(">");
    } else if (term.kind == Kind::Blank) {
        out.append("_:").append(term.lexical);
        scope.set(std::string(term.lexical), id);
    } else {
        append_quoted(out, term.lexical);
        if (term.lang.empty()) {
            out.append("^^<").append(term.datatype).append(">");
        } else {
            out.append("@").append(term.lang);
        }
    }
    out += ' ';
}

std::string written(const Dictionary& dictionary, BlankScope& scope, const QuadColumns& q, bool timestamps) {
    std::string out;
    for (std::size_t row = 0; row < q.subjects.size(); ++row) {
        if (timestamps) out.append(std::to_string(q.timestamps[row])).append(" ");
        for (const TermId id : {q.subjects[row], q.predicates[row], q.objects[row], q.graphs[row]})
            if (id != penstock::kUnbound) append_term(out, dictionary, scope, id);
        out += ".\n";
    }
    return out;
}

void demand(bool holds) {
    if (!holds) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size == 0) return 0;
    const std::string_view document(reinterpret_cast<const char*>(data) + 1, size - 1);
    ParseOptions options;
    options.quads = (data[0] & 1) != 0;
    options.timestamps = (data[0] & 2) != 0;
    options.strict = (data[0] & 4) != 0;
    options.max_term_bytes = (data[0] & 8) != 0 ? 40 : std::size_t{16} << 20;
    Dictionary dictionary;
    BlankScope scope;
    QuadColumns read;
    try {
        read = parse_nquads(dictionary, document, options, scope);
    } catch (const penstock::DataError&) {
        return 0;
    }
    demand(read.subjects.size() + read.bad_count <= read.lines);
    demand(!options.strict || read.bad_count == 0);

    BlankScope again_scope;
    const std::string text = written(dictionary, again_scope, read, options.timestamps);
    ParseOptions strict = options;
    strict.strict = true;
    strict.max_term_bytes = std::size_t{16} << 20;
    const std::size_t known = dictionary.size();
    const QuadColumns again = parse_nquads(dictionary, text, strict, again_scope);
    demand(again.subjects == read.subjects && again.predicates == read.predicates && again.objects == read.objects &&
           again.graphs == read.graphs && again.timestamps == read.timestamps);
    demand(dictionary.size() == known);
    return 0;
}
