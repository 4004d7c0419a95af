#include "rdf/ntriples.hpp"

#include <algorithm>
#include <array>

#include "errors.hpp"
#include "rdf/recent_iris.hpp"
#include "rdf/term_lexer.hpp"
#include "rdf/utf8.hpp"

namespace penstock {
namespace {

constexpr std::size_t kBatchTerms = 4096;  // number of new spellings that are interned together
constexpr std::size_t kBytesPerLine = 96;  // an estimate, to reserve memory
constexpr std::size_t kBytesPerTerm = 24;

class Reader {
public:
    Reader(Dictionary& dictionary, std::string_view document, const ParseOptions& options, BlankScope& scope)
        : dictionary_(dictionary),
          lexer_(document, options.max_term_bytes),
          options_(options),
          scope_(scope),
          recent_(document.size()) {
        pending_.reserve(std::min(kBatchTerms, document.size() / kBytesPerTerm) + 4);
        const std::size_t rows = document.size() / kBytesPerLine + 1;
        for (std::vector<TermId>* column : columns()) column->reserve(rows);
        if (options.timestamps) out_.timestamps.reserve(rows);
    }

    QuadColumns run() {
        const Dictionary::Lease lease(dictionary_);
        while (!lexer_.done()) {
            line();
            ++out_.lines;
            lexer_.skip_line_end();
        }
        flush();
        return std::move(out_);
    }

private:
    struct Fixup {
        std::uint32_t column;
        std::uint32_t place;
        std::size_t row;
    };
    using Row = std::array<PendingTerm, 4>;

    std::array<std::vector<TermId>*, 4> columns() {
        return {&out_.subjects, &out_.predicates, &out_.objects, &out_.graphs};
    }

    void line() {
        const char* begin = lexer_.at();
        const auto mark = static_cast<std::uint32_t>(pending_.size());
        try {
            lexer_.skip_blanks();
            if (!lexer_.at_line_end() && lexer_.peek() != '#') statement();
            lexer_.skip_comment();
        } catch (const SyntaxError& error) {
            recent_.forget_from(mark);
            pending_.resize(mark);
            bad_line(begin, error);
        }
        if (pending_.size() >= kBatchTerms) flush();
    }

    void statement() {
        std::int64_t timestamp = 0;
        if (options_.timestamps) {
            timestamp = lexer_.integer();
            if (lexer_.peek() != ' ' && lexer_.peek() != '\t') lexer_.fail_expected("a space after the timestamp");
            lexer_.skip_blanks();
        }
        Row row;
        row[0] = subject();
        lexer_.skip_blanks();
        row[1] = iri("a predicate (an IRI)");
        lexer_.skip_blanks();
        row[2] = object();
        lexer_.skip_blanks();
        if (options_.quads && lexer_.peek() != '.') {
            row[3] = graph();
            lexer_.skip_blanks();
        }
        lexer_.expect('.', options_.quads && row[3].id == kUnbound && row[3].place == PendingTerm::kKnown
                               ? "a graph or '.'"
                               : "'.'");
        lexer_.skip_blanks();
        if (!lexer_.at_line_end() && lexer_.peek() != '#') lexer_.fail_expected("the end of the line");
        append(row);
        if (options_.timestamps) out_.timestamps.push_back(timestamp);
    }

    // ---- terms
    PendingTerm subject() {
        switch (lexer_.peek()) {
            case '<':
                return iri("a subject");
            case '_':
                return {scope_.node(lexer_.blank_label(), dictionary_)};
            default:
                lexer_.fail_expected("a subject (an IRI or a blank node)");
        }
    }
    PendingTerm object() {
        switch (lexer_.peek()) {
            case '<':
                return iri("an object");
            case '_':
                return {scope_.node(lexer_.blank_label(), dictionary_)};
            case '"':
                return literal();
            default:
                lexer_.fail_expected("an object (an IRI, a blank node or a literal)");
        }
    }
    PendingTerm graph() {
        switch (lexer_.peek()) {
            case '<':
                return iri("a graph");
            case '_':
                return {scope_.node(lexer_.blank_label(), dictionary_)};
            default:
                lexer_.fail_expected("a graph (an IRI or a blank node) or '.'");
        }
    }
    PendingTerm iri(const char* what) {
        if (lexer_.peek() != '<') lexer_.fail_expected(what);
        const char* from = lexer_.at();
        const std::string_view text = lexer_.iri();
        if (!lexer_.in_document(text)) {
            lexer_.check(text, from);
            return add({Kind::Iri, text, {}, {}});
        }
        RecentIris::Cell& cell = recent_.cell(text);
        if (cell.holds(text)) return cell.term;
        lexer_.check(text, from);
        const PendingTerm term = add({Kind::Iri, text, {}, {}});
        recent_.fill(cell, text, term);
        return term;
    }
    PendingTerm literal() {
        const TermView term = lexer_.literal();
        if (const TermId id = encode_inline(term.lexical, term.datatype, term.lang); id != kUnbound) return {id};
        return add(term);
    }
    PendingTerm add(const TermView& term) {
        pending_.push_back(term);
        return {kUnbound, static_cast<std::uint32_t>(pending_.size() - 1)};
    }

    // ---- rows
    void append(const Row& row) {
        for (std::uint32_t i = 0; i < row.size(); ++i) {
            std::vector<TermId>& column = *columns()[i];
            if (row[i].place != PendingTerm::kKnown) fixups_.push_back({i, row[i].place, column.size()});
            column.push_back(row[i].id);
        }
    }
    void flush() {
        ids_.resize(pending_.size());
        dictionary_.intern(pending_, ids_.data(), options_.lifetime);
        for (const Fixup& fixup : fixups_) (*columns()[fixup.column])[fixup.row] = ids_[fixup.place];
        recent_.resolve(ids_.data());
        fixups_.clear();
        pending_.clear();
        lexer_.forget();
    }

    // ---- errors
    void bad_line(const char* begin, const SyntaxError& error) {
        const std::uint64_t number = options_.first_line + out_.lines;
        std::uint64_t column = 1;
        for (const char* at = begin; at < error.at; ++at) column += (static_cast<unsigned char>(*at) & 0xC0) != 0x80;
        if (options_.strict) {
            throw DataError("line " + std::to_string(number) + ", column " + std::to_string(column) + ": " +
                            error.reason);
        }
        lexer_.move_to(begin);
        lexer_.skip_rest_of_line();
        ++out_.bad_count;
        if (out_.bad.size() < options_.max_bad)
            out_.bad.push_back({number, column, std::string(begin, lexer_.at()), error.reason});
    }

    Dictionary& dictionary_;
    TermLexer lexer_;
    const ParseOptions& options_;
    BlankScope& scope_;
    QuadColumns out_;
    RecentIris recent_;
    std::vector<TermView> pending_;  // terms of this batch that have no id yet
    std::vector<TermId> ids_;
    std::vector<Fixup> fixups_;
};

}  // namespace

QuadColumns parse_nquads(Dictionary& dictionary, std::string_view document, const ParseOptions& options,
                         BlankScope& scope) {
    return Reader(dictionary, document, options, scope).run();
}

}  // namespace penstock
