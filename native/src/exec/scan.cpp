// Triple patterns: each input row is extended by its matches. The access path follows from which ends are bound:
// expansion from the bound end, a test where both are, an index scan where neither is (Wukong §5).
#include <algorithm>
#include <utility>

#include "exec/charge.hpp"
#include "exec/compiler.hpp"
#include "exec/indexed_seed.hpp"
#include "exec/lookup.hpp"
#include "exec/pattern.hpp"
#include "exec/seed.hpp"
#include "exec/vertex_set.hpp"

namespace penstock::exec {

namespace {

class Scan final : public PatternOperator {
public:
    /// What a scan can have in addition to a triple pattern (docs/plan-format.md).
    struct Choices {
        std::vector<Alternative> predicates;  // empty: a single predicate
        std::vector<TermId> among;            // the values of the end that is omitted; empty: any value
    };

    Scan(OperatorPtr in, const TermRef& s, const TermRef& p, const TermRef& o, int graph_slot, const Spec& dataset,
         const std::vector<Slot>* keep, Choices choices)
        : PatternOperator(std::move(in), s, &p, o, graph_slot, keep),
          seed_(dynamic_cast<Seed*>(in_.get())),
          omits_subject_(s.omitted),
          exists_(s.omitted || o.omitted),
          dataset_(dataset, graph_slot >= 0),
          alternatives_(std::move(choices.predicates)),
          among_(std::move(choices.among)) {
        if (s.omitted && o.omitted) throw Error("plan: a scan without ends");
        if (exists_ && !alternatives_.empty()) throw Error("plan: 'any' for a predicate and for an end");
        if (!among_.empty() && s_.free() && o_.free()) throw Error("plan: a scan whose two ends are free has 'any'");
        std::sort(among_.begin(), among_.end());
    }

private:
    using Rows = std::span<const std::uint32_t>;
    static constexpr std::size_t kManyLabels = 16;

    void begin() override {
        joined_ = has_vertex_set_ = false;
        if (p_.constant == 0 || g_.column >= 0) return;
        if (alternatives_.empty())
            fixed_.resolve(*run_, dataset_, p_.constant);
        else
            fixed_.resolve(*run_, dataset_, alternatives_);
        if (run_->lookup_memo != nullptr && !fixed_.settled()) run_->lookup_memo->abandon();
        if (seed_ != nullptr && run_->indexed_seed != nullptr && run_->forker == nullptr) restrict_seed();
    }
    void finish() override {
        lookup_.release(*run_);
        charge_.release(run_->budget());
    }

    /// If the seed has many more rows than the pattern has edges: only rows whose value is a vertex of an edge are
    /// needed, because all others have no match.
    void restrict_seed() {
        const End& end = bound_end();
        if (end.column < 0) return;
        std::uint64_t edges = 0;
        for (const EdgeSet& set : fixed_.sets()) edges += set.source->edge_count(set.label);
        if (!run_->indexed_seed->pays(edges)) return;
        const EdgeSet* const set = fixed_.sets().size() == 1 ? &fixed_.sets()[0] : nullptr;
        joined_ = set != nullptr && !set->inverse && !exists_ && (s_.free() || o_.free()) && join_seed(end, *set);
        if (!joined_) find_seed_rows(end);
        seed_->restrict_to(seed_rows_);
    }

    /// If the edges of one set alone determine the matches: the seed's rows and their matches follow from one pass over
    /// the edges, without look-ups in the source. Returns false if there are too many matches to hold.
    bool join_seed(const End& end, const EdgeSet& set) {
        subjects_.clear();
        objects_.clear();
        set.source->edges(set.label, subjects_, objects_);
        run_->work(subjects_.size());
        const bool out = &end == &s_;
        if (!run_->indexed_seed->join(static_cast<std::size_t>(end.column), out ? subjects_ : objects_,
                                      out ? objects_ : subjects_, seed_rows_, matches_))
            return false;
        if (run_->lookup_memo != nullptr) run_->lookup_memo->abandon();
        charge_.set(run_->budget(), (subjects_.capacity() + objects_.capacity()) * sizeof(TermId) +
                                        seed_rows_.capacity() * sizeof(std::uint32_t) +
                                        matches_.rows.capacity() * (sizeof(std::uint32_t) + sizeof(TermId)) +
                                        run_->indexed_seed->join_bytes());
        first_row_ = next_match_ = 0;
        return true;
    }

    void find_seed_rows(const End& end) {
        vertices_.clear();
        for (const EdgeSet& set : fixed_.sets())
            set.source->vertices(set.label, (&end == &s_) != set.inverse ? Dir::Out : Dir::In, vertices_);
        run_->work(vertices_.size());
        run_->indexed_seed->rows_with(static_cast<std::size_t>(end.column), vertices_, seed_rows_);
        charge_vertices();
    }

    void charge_vertices() {
        charge_.set(run_->budget(),
                    vertices_.capacity() * sizeof(TermId) + seed_rows_.capacity() * sizeof(std::uint32_t));
    }

    /// For rows of a seed that was joined: their matches are the next ones.
    bool match_joined(const Table& rows) {
        const EdgeSet& set = fixed_.sets()[0];
        MatchBatch batch;
        batch.p = set.predicate;
        batch.g = set.graph;
        const std::size_t from = next_match_;
        found_rows_.clear();
        for (; next_match_ < matches_.rows.size() && matches_.rows[next_match_] < first_row_ + rows.rows; ++next_match_)
            found_rows_.push_back(static_cast<std::uint32_t>(matches_.rows[next_match_] - first_row_));
        first_row_ += rows.rows;
        batch.rows = found_rows_;
        (s_.free() ? batch.s : batch.o) = matches_.values.data() + from;
        return emit(batch);
    }

    bool consume(Table& rows) override {
        run_->work(rows.rows);
        start_input(rows);
        if (joined_) return match_joined(rows) && finish_input();
        bool more =
            partition([this](Rows part, TermId predicate, TermId graph) { return match(part, predicate, graph); });
        return more && finish_input();
    }

    bool match(Rows rows, TermId predicate, TermId graph) {
        bool free_ends = s_.free() && o_.free();
        if (p_.constant != 0 && g_.column < 0) {
            if (free_ends || !alternatives_.empty() || fixed_.sets().size() <= kManyLabels)
                return match_groups(rows, fixed_.sets());
            return match_found_labels(rows, predicate, graph);
        }
        if (predicate == 0 && !free_ends) return match_found_labels(rows, 0, graph);
        sets_.clear();
        if (run_->lookup_memo != nullptr) run_->lookup_memo->abandon();  // the set of labels may change
        dataset_.resolve(*run_, predicate, graph, sets_);
        return match_groups(rows, sets_);
    }

    bool match_groups(Rows rows, std::span<const EdgeSet> sets) {
        while (!sets.empty()) {
            auto group = first_group(sets);
            bool more = s_.column < 0 && o_.column < 0 ? match_once(rows, group) : match_each(rows, group);
            if (!more) return false;
            sets = sets.subspan(group.size());
        }
        return true;
    }

    /// For a free predicate, or if there are so many graphs that most of them lack the vertex: the labels at the bound
    /// end determine where to look.
    bool match_found_labels(Rows rows, TermId predicate, TermId graph) {
        const End& from = bound_end();
        bool each = s_.column >= 0 || o_.column >= 0;
        std::span<const TermId> keys = each ? cells(from, rows, keys_) : std::span(&from.constant, 1);
        probe_.probe(*run_, dataset_, keys, &from == &s_ ? Dir::Out : Dir::In, predicate, graph);
        for (std::size_t i = 0; i < probe_.size();) {
            i = probe_.group(i, sets_, found_keys_);
            if (!each) {
                if (!match_once(rows, sets_)) return false;
                continue;
            }
            for (std::uint32_t& key : found_keys_) key = rows[key];
            if (!match_each(found_keys_, sets_)) return false;
        }
        return true;
    }
    const End& bound_end() const {
        if (s_.column >= 0) return s_;
        if (o_.column >= 0) return o_;
        return s_.constant != 0 ? s_ : o_;
    }

    /// For a pattern whose ends do not depend on the row: one look-up, and its product with the rows.
    bool match_once(Rows rows, std::span<const EdgeSet> group) {
        MatchBatch batch;
        batch.p = group[0].predicate;
        batch.g = group[0].graph;
        if (s_.constant != 0 && o_.constant != 0) {
            lookup_.contains(*run_, group, std::span(&s_.constant, 1), std::span(&o_.constant, 1), found_);
            return found_[0] == 0 || emit_product(rows, 1, batch);
        }
        if (s_.free() && o_.free() && exists_) return emit_vertices(rows, group, batch);
        if (s_.free() && o_.free()) {
            lookup_.pairs(*run_, group, subjects_, objects_);
            batch.s = subjects_.data();
            batch.o = objects_.data();
            return emit_product(rows, subjects_.size(), batch);
        }
        bool out = s_.constant != 0;
        const Matches& found = lookup_.expand(*run_, group, std::span(out ? &s_.constant : &o_.constant, 1),
                                              out ? Dir::Out : Dir::In, matches_);
        if (exists_) return !has_selected(found) || emit_product(rows, 1, batch);
        (out ? batch.o : batch.s) = found.values.data();
        return emit_product(rows, found.values.size(), batch);
    }

    /// For a pattern with at least one end from the row.
    bool match_each(Rows rows, std::span<const EdgeSet> group) {
        MatchBatch batch;
        batch.p = group[0].predicate;
        batch.g = group[0].graph;
        if (!s_.free() && !o_.free()) {
            lookup_.contains(*run_, group, cells(s_, rows, subjects_), cells(o_, rows, objects_), found_);
            matches_.rows.clear();
            for (std::size_t i = 0; i < rows.size(); ++i)
                if (found_[i]) matches_.rows.push_back(rows[i]);
            batch.rows = matches_.rows;
            return emit(batch);
        }
        bool out = !s_.free();
        if (exists_) {
            take_existing(rows, group, cells(out ? s_ : o_, rows, keys_), out ? Dir::Out : Dir::In);
            batch.rows = found_rows_;
            return emit(batch);
        }
        const Matches& found =
            lookup_.expand(*run_, group, cells(out ? s_ : o_, rows, keys_), out ? Dir::Out : Dir::In, matches_);
        batch.rows = found.rows;
        if (rows.data() != all_rows().data()) {
            found_rows_.clear();
            for (const std::uint32_t row : found.rows) found_rows_.push_back(rows[row]);
            batch.rows = found_rows_;
        }
        (out ? batch.o : batch.s) = found.values.data();
        return emit(batch);
    }

    /// For a pattern with two free ends, of which one is omitted.
    bool emit_vertices(Rows rows, std::span<const EdgeSet> group, MatchBatch batch) {
        take_vertices(group, omits_subject_ ? Dir::In : Dir::Out);
        (omits_subject_ ? batch.o : batch.s) = vertices_.data();
        return emit_product(rows, vertices_.size(), batch);
    }

    /// Sets found_rows_ to the rows whose key has a match.
    void take_existing(Rows rows, std::span<const EdgeSet> group, std::span<const TermId> keys, Dir dir) {
        found_.assign(rows.size(), 0);
        if (few_vertices(group, rows.size())) {
            if (!std::exchange(has_vertex_set_, true)) {
                take_vertices(group, dir);
                vertex_set_.assign(vertices_);
            }
            for (std::size_t i = 0; i < keys.size(); ++i) found_[i] = vertex_set_.contains(keys[i]);
        } else {
            const Matches& found = lookup_.expand(*run_, group, keys, dir, matches_);
            for (std::size_t i = 0; i < found.rows.size(); ++i) found_[found.rows[i]] |= is_selected(found.values[i]);
        }
        found_rows_.clear();
        for (std::size_t i = 0; i < rows.size(); ++i)
            if (found_[i] != 0) found_rows_.push_back(rows[i]);
    }

    /// Whether it is cheaper to read all vertices of a label than to look up each row. The vertices are those of
    /// fixed_, so they are read once for all rows.
    bool few_vertices(std::span<const EdgeSet> group, std::size_t rows) const {
        if (!among_.empty() || p_.constant == 0 || g_.column >= 0 || group.data() != fixed_.sets().data() ||
            group.size() != fixed_.sets().size() || run_->lookup_memo != nullptr)
            return false;
        if (has_vertex_set_) return true;
        std::uint64_t edges = 0;
        for (const EdgeSet& set : group) edges += set.source->edge_count(set.label);
        return edges <= rows / kRowsPerEdge;
    }

    /// Sets vertices_ to the distinct subjects (Out) or objects (In) of a group.
    void take_vertices(std::span<const EdgeSet> group, Dir dir) {
        if (run_->lookup_memo != nullptr) run_->lookup_memo->abandon();
        vertices_.clear();
        for (const EdgeSet& set : group) set.source->vertices(set.label, dir, vertices_);
        run_->work(vertices_.size());
        charge_vertices();
        if (group.size() < 2) return;
        std::sort(vertices_.begin(), vertices_.end());
        vertices_.erase(std::unique(vertices_.begin(), vertices_.end()), vertices_.end());
    }

    bool is_selected(TermId value) const {
        return among_.empty() || std::binary_search(among_.begin(), among_.end(), value);
    }
    bool has_selected(const Matches& found) const {
        return std::ranges::any_of(found.values, [this](TermId value) { return is_selected(value); });
    }

    /// The end's values in the given rows; the column itself if these are all its rows.
    std::span<const TermId> cells(const End& end, Rows rows, Column& buffer) {
        if (end.column < 0) {
            buffer.assign(rows.size(), end.constant);
            return buffer;
        }
        const Column& column = input().columns[static_cast<std::size_t>(end.column)];
        if (rows.data() == all_rows().data()) return {column.data(), rows.size()};
        buffer.clear();
        for (std::uint32_t row : rows) buffer.push_back(column[row]);
        return buffer;
    }

    static constexpr std::size_t kRowsPerEdge = 2;  // rows that are looked up in the time in which an edge is read

    Seed* seed_;                   // the input, if it is the seed
    bool omits_subject_;           // the omitted end
    bool exists_;                  // an end is omitted: a row is output once if it has a match
    bool has_vertex_set_ = false;  // in this run
    // Members that a small run with a fixed predicate reads come first.
    FixedEdges fixed_;
    Matches matches_;
    Lookup lookup_;
    Dataset dataset_;
    std::vector<Alternative> alternatives_;  // empty: a single predicate
    std::vector<TermId> among_;              // sorted; of the omitted end; empty: any value
    VertexSet vertex_set_;
    LabelProbe probe_;
    std::vector<EdgeSet> sets_;
    std::vector<std::uint32_t> found_keys_, found_rows_;
    std::vector<std::uint8_t> found_;
    Column keys_, subjects_, objects_, vertices_;
    std::vector<std::uint32_t> seed_rows_;
    bool joined_ = false;                         // the seed, by its index: matches_ has the matches of all its rows
    std::size_t first_row_ = 0, next_match_ = 0;  // of the next morsel of the joined seed
    Charge charge_;                               // of what the restriction of the seed holds
};

std::vector<Alternative> alternatives_of(const Spec& any, const Compiler& compiler) {
    std::vector<Alternative> alternatives;
    for (const Spec& predicate : any.as_list()) {
        const TermRef term = compiler.term(predicate);
        if (term.variable) throw Error("plan: an alternative predicate is a variable");
        const Spec* inverse = predicate.find("inverse");
        alternatives.push_back({term.id, inverse != nullptr && inverse->as_bool()});
    }
    if (alternatives.empty()) throw Error("plan: a scan without predicates");
    return alternatives;
}

/// An end of a scan. If the end is any of several values, fills `among` with these values.
TermRef end_of(const Spec& end, const Compiler& compiler, std::vector<TermId>& among) {
    const Spec* any = end.find("any");
    if (any == nullptr) return compiler.term(end);
    for (const Spec& value : any->as_list()) among.push_back(value.as_int());
    TermRef omitted;
    omitted.omitted = true;
    return omitted;
}

}  // namespace

OperatorPtr make_scan(const Spec& spec, Compiler& compiler) {
    std::vector<Slot> keep;
    if (const Spec* slots = spec.find("keep")) keep = compiler.slot_list(*slots);
    Scan::Choices choices;
    const Spec* predicate = &spec.at("p");
    if (const Spec* any = predicate->find("any")) {
        choices.predicates = alternatives_of(*any, compiler);
        if (spec.find("graph") != nullptr) throw Error("plan: alternative predicates with a graph variable");
        predicate = &any->as_list().front();
    }
    OperatorPtr in = compiler.child(spec, "in");
    const TermRef s = end_of(spec.at("s"), compiler, choices.among), p = compiler.term(*predicate),
                  o = end_of(spec.at("o"), compiler, choices.among);
    return std::make_unique<Scan>(std::move(in), s, p, o, compiler.slot_at(spec, "graph"), spec.at("dataset"),
                                  spec.find("keep") != nullptr ? &keep : nullptr, std::move(choices));
}

}  // namespace penstock::exec
