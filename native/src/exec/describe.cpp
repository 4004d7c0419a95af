// DESCRIBE: concise bounded descriptions, i.e. all triples with the resource as subject, and recursively those of the
// blank nodes that occur as objects (https://www.w3.org/Submission/CBD/).
#include <array>

#include "exec/compiler.hpp"
#include "exec/lookup.hpp"
#include "exec/triples.hpp"

namespace penstock::exec {

namespace {

class Describe final : public Unary {
public:
    Describe(const Spec& spec, Compiler& compiler)
        : Unary(compiler.child(spec, "in")), dataset_(spec.at("dataset"), false) {
        int member = compiler.slot_at(spec, "member");
        if (member >= 0) {
            member_ = in_->schema().index_of(static_cast<Slot>(member));
            if (member_ < 0) throw Error("plan: 'describe' over rows without their member");
            schema_.add(static_cast<Slot>(member), false);
        }
        for (Slot slot : compiler.slot_list(spec.at("slots"))) schema_.add(slot, false);
        if (schema_.slots.size() != (member >= 0 ? 4u : 3u)) throw Error("plan: 'describe' needs three slots");
        for (const Spec& term : spec.at("terms").as_list()) terms_.push_back(compiler.term(term));
        for (const TermRef& term : terms_) columns_.push_back(term.variable ? in_->schema().index_of(term.slot) : -1);
        triples_.configure(schema_);
    }

private:
    void begin() override {
        triples_.begin();
        resources_.reset(2);
        // A constant is described even if the pattern has no solution (SPARQL 1.1 §16.4.1), once per member.
        int seed_member = member_ < 0 ? -1 : run_->seed.index_of(schema_.slots[0]);
        for (const TermRef& term : terms_) {
            if (term.variable) continue;
            if (member_ < 0)
                add_resource(0, term.id);
            else if (seed_member >= 0)
                for (TermId member : run_->seed.columns[static_cast<std::size_t>(seed_member)])
                    add_resource(member, term.id);
        }
    }

    bool consume(Table& rows) override {
        run_->work(rows.rows);
        for (std::size_t t = 0; t < terms_.size(); ++t) {
            if (columns_[t] < 0) continue;
            const Column& column = rows.columns[static_cast<std::size_t>(columns_[t])];
            for (std::size_t row = 0; row < rows.rows; ++row)
                if (column[row] != kUnbound) add_resource(member_of(rows, row), column[row]);
        }
        return true;
    }
    TermId member_of(const Table& rows, std::size_t row) const {
        return member_ < 0 ? 0 : rows.columns[static_cast<std::size_t>(member_)][row];
    }
    void add_resource(TermId member, TermId resource) {
        std::array<TermId, 2> key{member, resource};
        resources_.assign_one(key, run_->budget());
    }

    /// resources_ is the queue: blank nodes found are appended to it.
    void finish() override {
        bool more = true;
        for (std::size_t done = 0; done < resources_.size() && more;) {
            std::size_t n = std::min(kMorsel, resources_.size() - done);
            auto first = static_cast<std::ptrdiff_t>(done);
            members_.assign(resources_.column(0).begin() + first,
                            resources_.column(0).begin() + first + static_cast<std::ptrdiff_t>(n));
            subjects_.assign(resources_.column(1).begin() + first,
                             resources_.column(1).begin() + first + static_cast<std::ptrdiff_t>(n));
            done += n;
            describe();
            more = triples_.flush(*run_, *out_);
        }
        resources_.release(run_->budget());
        triples_.release(*run_);
        lookup_.release(*run_);
    }

    void describe() {
        probe_.probe(*run_, dataset_, subjects_, Dir::Out, 0, 0);
        for (std::size_t i = 0; i < probe_.size();) {
            i = probe_.group(i, sets_, rows_);
            keys_.clear();
            for (std::uint32_t row : rows_) keys_.push_back(subjects_[row]);
            const Matches& found = lookup_.expand(*run_, sets_, keys_, Dir::Out, matches_);
            for (std::size_t m = 0; m < found.rows.size(); ++m) {
                std::uint32_t row = rows_[found.rows[m]];
                triples_.add(*run_, members_[row], subjects_[row], sets_[0].predicate, found.values[m]);
                if (tag_of(found.values[m]) == Tag::Blank) add_resource(members_[row], found.values[m]);
            }
        }
    }

    Dataset dataset_;
    int member_ = -1;
    std::vector<TermRef> terms_;
    std::vector<int> columns_;
    KeyTable resources_;  // (member, resource)
    TripleSet triples_;
    Lookup lookup_;
    LabelProbe probe_;
    Column members_, subjects_, keys_;
    std::vector<EdgeSet> sets_;
    std::vector<std::uint32_t> rows_;
    Matches matches_;
};

}  // namespace

OperatorPtr make_describe(const Spec& spec, Compiler& compiler) { return std::make_unique<Describe>(spec, compiler); }

}  // namespace penstock::exec
