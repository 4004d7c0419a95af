// CONSTRUCT (SPARQL 1.1 §16.2).
#include <algorithm>
#include <array>

#include "exec/compiler.hpp"
#include "exec/triples.hpp"

namespace penstock::exec {

namespace {

class Construct final : public Unary {
public:
    Construct(const Spec& spec, Compiler& compiler) : Unary(compiler.child(spec, "in")) {
        int member = compiler.slot_at(spec, "member");
        if (member >= 0) {
            member_ = in_->schema().index_of(static_cast<Slot>(member));
            if (member_ < 0) throw Error("plan: 'construct' over rows without their member");
            schema_.add(static_cast<Slot>(member), false);
        }
        for (Slot slot : compiler.slot_list(spec.at("slots"))) schema_.add(slot, false);
        if (schema_.slots.size() != (member >= 0 ? 4u : 3u)) throw Error("plan: 'construct' needs three slots");
        for (const Spec& triple : spec.at("template").as_list()) {
            if (triple.as_list().size() != 3) throw Error("plan: a template's triple needs three terms");
            for (const Spec& term : triple.as_list()) template_.push_back(cell(term, compiler));
        }
        triples_.configure(schema_);
        schema_.shape(buffer_);
        all_ = spec.find("all") != nullptr;
        if (all_ && !labels_.empty()) throw Error("plan: 'construct' of blank nodes has no rows that occur again");
    }

private:
    struct Cell {
        enum : std::uint8_t { Column, Constant, Blank, Unbound } kind;
        std::uint64_t value;
    };

    Cell cell(const Spec& spec, Compiler& compiler) {
        if (const Spec* blank = spec.find("bnode")) {
            std::uint64_t label = blank->as_int();
            auto found = std::find(labels_.begin(), labels_.end(), label);
            if (found == labels_.end()) found = labels_.insert(found, label);
            return {Cell::Blank, static_cast<std::uint64_t>(found - labels_.begin())};
        }
        TermRef term = compiler.term(spec);
        if (!term.variable) return {Cell::Constant, term.id};
        int column = in_->schema().index_of(term.slot);
        return column < 0 ? Cell{Cell::Unbound, 0} : Cell{Cell::Column, static_cast<std::uint64_t>(column)};
    }

    void begin() override { triples_.begin(); }
    void finish() override { triples_.release(*run_); }

    bool consume(Table& rows) override {
        run_->work(rows.rows);
        if (all_) return push_all(rows);
        for (std::size_t row = 0; row < rows.rows; ++row) {
            blanks_.assign(labels_.size(), kUnbound);
            for (std::size_t t = 0; t < template_.size(); t += 3) add(rows, row, &template_[t]);
        }
        return triples_.flush(*run_, *out_);
    }

    void add(const Table& rows, std::size_t row, const Cell* cells) {
        const auto [s, p, o] = triple(rows, row, cells);
        if (is_triple(s, p, o)) triples_.add(*run_, member_ < 0 ? 0 : rows.columns[member_column()][row], s, p, o);
    }
    std::array<TermId, 3> triple(const Table& rows, std::size_t row, const Cell* cells) {
        return {value(rows, row, cells[0]), value(rows, row, cells[1]), value(rows, row, cells[2])};
    }
    bool is_triple(TermId s, TermId p, TermId o) const {
        const LocalTerms& terms = run_->expressions.terms;
        const Kind subject = kind_of(s, terms);
        return (subject == Kind::Iri || subject == Kind::Blank) && kind_of(p, terms) == Kind::Iri && o != kUnbound;
    }
    std::size_t member_column() const { return static_cast<std::size_t>(member_); }

    /// Pushes the triples of each row, also those that other rows give.
    bool push_all(const Table& rows) {
        for (std::size_t t = 0; t < template_.size(); t += 3) {
            for (Column& column : buffer_.columns) column.clear();
            for (std::size_t row = 0; row < rows.rows; ++row) {
                const auto cells = triple(rows, row, &template_[t]);
                if (!is_triple(cells[0], cells[1], cells[2])) continue;
                auto column = buffer_.columns.begin();
                if (member_ >= 0) (column++)->push_back(rows.columns[member_column()][row]);
                for (const TermId id : cells) (column++)->push_back(id);
            }
            buffer_.rows = buffer_.columns.back().size();
            if (buffer_.rows != 0 && !out_->push(buffer_)) return false;
        }
        return true;
    }
    TermId value(const Table& rows, std::size_t row, const Cell& cell) {
        switch (cell.kind) {
            case Cell::Column:
                return rows.columns[cell.value][row];
            case Cell::Constant:
                return cell.value;
            case Cell::Blank: {
                TermId& blank = blanks_[cell.value];
                if (blank == kUnbound) blank = run_->expressions.terms.fresh_blank();
                return blank;
            }
            default:
                return kUnbound;
        }
    }

    int member_ = -1;
    bool all_ = false;  // a triple may occur several times
    Table buffer_;
    std::vector<Cell> template_;
    std::vector<std::uint64_t> labels_;  // of blank nodes
    std::vector<TermId> blanks_;         // of the current solution
    TripleSet triples_;
};

}  // namespace

OperatorPtr make_construct(const Spec& spec, Compiler& compiler) { return std::make_unique<Construct>(spec, compiler); }

}  // namespace penstock::exec
