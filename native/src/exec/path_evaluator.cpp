#include <algorithm>
#include <array>

#include "exec/path.hpp"

namespace penstock::exec {

namespace {

constexpr std::size_t kFrontier = 4 * kMorsel;  // keys per step of a closure

Dir flip(Dir dir) { return dir == Dir::Out ? Dir::In : Dir::Out; }

}  // namespace

void PathEvaluator::begin(Run& run, TermId graph) {
    run_ = &run;
    graph_ = graph;
}

void PathEvaluator::step(const PathExpression& path, std::span<const TermId> keys, Dir dir, Ends ends, Matches& found) {
    found.clear();
    if (keys.empty()) return;
    using Kind = PathExpression::Kind;
    switch (path.kind) {
        case Kind::Link:
            return link(path.predicate, keys, dir, found);
        case Kind::Inverse:
            return step(path.parts[0], keys, flip(dir), ends, found);
        case Kind::Sequence:
            return sequence(path, keys, dir, ends, found);
        case Kind::Plus:
            return closure(path.parts[0], keys, dir, ends, found);
        case Kind::Star:
            closure(path.parts[0], keys, dir, ends, found);
            return add_zero_length(keys, ends, found);
        case Kind::Optional:
            step(path.parts[0], keys, dir, ends, found);
            return add_zero_length(keys, ends, found);
        case Kind::Negated:
            if (path.forward) negated(*path.forward, keys, dir, found);
            if (path.inverse) negated(*path.inverse, keys, flip(dir), found);
            return;
        case Kind::Alternative: {
            Matches part;
            for (const PathExpression& choice : path.parts) {
                step(choice, keys, dir, ends, part);
                found.rows.insert(found.rows.end(), part.rows.begin(), part.rows.end());
                found.values.insert(found.values.end(), part.values.begin(), part.values.end());
            }
            return;
        }
    }
}

void PathEvaluator::link(TermId predicate, std::span<const TermId> keys, Dir dir, Matches& found) {
    sets_.clear();
    dataset_.resolve(*run_, predicate, graph_, sets_);
    if (sets_.empty()) return;
    if (const Matches& linked = lookup_.expand(*run_, sets_, keys, dir, found); &linked != &found) found = linked;
}

/// The value between two parts is that of a variable. The near end of a part counts as a term only for the first part,
/// or if it can only be a node of the graph.
void PathEvaluator::sequence(const PathExpression& path, std::span<const TermId> keys, Dir dir, Ends ends,
                             Matches& found) {
    ScopedCharge scratch(run_->budget());
    std::size_t n = path.parts.size();
    auto part = [&](std::size_t i) -> const PathExpression& { return path.parts[dir == Dir::Out ? i : n - 1 - i]; };
    step(part(0), keys, dir, {ends.near_term, n == 1 && ends.far_term}, found);
    bool only_nodes = !part(0).nullable();
    for (std::size_t i = 1; i < n; ++i) {
        Matches next;
        step(part(i), found.values, dir, {only_nodes, i == n - 1 && ends.far_term}, next);
        scratch.set((next.rows.size() + found.rows.size()) * (sizeof(TermId) + sizeof(std::uint32_t)));
        for (std::uint32_t& row : next.rows) row = found.rows[row];
        found = std::move(next);
        only_nodes = only_nodes || !part(i).nullable();
    }
}

/// ALP of §18.4, for all keys at once. Between variables it starts at nodes of the graph; within it each step starts at
/// a term.
void PathEvaluator::closure(const PathExpression& path, std::span<const TermId> keys, Dir dir, Ends ends,
                            Matches& found) {
    KeyTable visited;  // (index of the key, node)
    visited.reset(2);
    Column rows, nodes;
    std::vector<std::uint8_t> allowed(keys.size(), 1);
    if (path.nullable() && !ends.near_term && !ends.far_term) mark_nodes(keys, allowed);
    for (std::size_t i = 0; i < keys.size(); ++i) {
        if (!allowed[i]) continue;
        rows.push_back(i);
        nodes.push_back(keys[i]);
    }
    std::vector<std::uint32_t> numbers;
    auto explore = [&] {
        Matches reached;
        step(path, nodes, dir, {true, false}, reached);
        Column from(reached.rows.size());
        for (std::size_t i = 0; i < from.size(); ++i) from[i] = rows[reached.rows[i]];
        numbers.resize(from.size());
        std::array<const TermId*, 2> pairs{from.data(), reached.values.data()};
        visited.assign(pairs, from.size(), numbers.data(), run_->budget());
    };
    explore();
    // The pairs themselves are the queue: pairs from `done` on are visited but not yet expanded.
    for (std::size_t done = 0; done < visited.size();) {
        std::size_t n = std::min(kFrontier, visited.size() - done);
        auto first = static_cast<std::ptrdiff_t>(done), last = static_cast<std::ptrdiff_t>(done + n);
        rows.assign(visited.column(0).begin() + first, visited.column(0).begin() + last);
        nodes.assign(visited.column(1).begin() + first, visited.column(1).begin() + last);
        done += n;
        run_->work(n);
        explore();
    }
    found.rows.assign(visited.column(0).begin(), visited.column(0).end());
    found.values.assign(visited.column(1).begin(), visited.column(1).end());
    visited.release(run_->budget());
}

void PathEvaluator::add_zero_length(std::span<const TermId> keys, Ends ends, Matches& found) {
    std::vector<std::uint8_t> allowed(keys.size(), 1);
    if (!ends.near_term && !ends.far_term) mark_nodes(keys, allowed);
    for (std::size_t i = 0; i < keys.size(); ++i) {
        if (!allowed[i]) continue;
        found.rows.push_back(static_cast<std::uint32_t>(i));
        found.values.push_back(keys[i]);
    }
    KeyTable distinct;
    distinct.reset(2);
    Column rows(found.rows.begin(), found.rows.end());
    std::vector<std::uint32_t> numbers(rows.size());
    std::array<const TermId*, 2> pairs{rows.data(), found.values.data()};
    distinct.assign(pairs, rows.size(), numbers.data(), run_->budget());
    found.rows.assign(distinct.column(0).begin(), distinct.column(0).end());
    found.values.assign(distinct.column(1).begin(), distinct.column(1).end());
    distinct.release(run_->budget());
}

/// Sets found[i] if keys[i] is a subject or object of the graph.
void PathEvaluator::mark_nodes(std::span<const TermId> keys, std::vector<std::uint8_t>& found) {
    found.assign(keys.size(), 0);
    LabelProbe probe;
    std::vector<EdgeSet> sets;
    std::vector<std::uint32_t> rows;
    for (Dir dir : {Dir::Out, Dir::In}) {
        probe.probe(*run_, dataset_, keys, dir, 0, graph_);
        for (std::size_t i = 0; i < probe.size();) {
            i = probe.group(i, sets, rows);
            for (std::uint32_t row : rows) found[row] = 1;
        }
    }
}

void PathEvaluator::negated(const std::vector<TermId>& excluded, std::span<const TermId> keys, Dir dir,
                            Matches& found) {
    LabelProbe probe;
    probe.probe(*run_, dataset_, keys, dir, 0, graph_);
    std::vector<EdgeSet> sets;
    std::vector<std::uint32_t> rows;
    Column nodes;
    Matches part;
    for (std::size_t i = 0; i < probe.size();) {
        i = probe.group(i, sets, rows);
        if (std::binary_search(excluded.begin(), excluded.end(), sets[0].predicate)) continue;
        nodes.clear();
        for (std::uint32_t row : rows) nodes.push_back(keys[row]);
        const Matches& linked = lookup_.expand(*run_, sets, nodes, dir, part);
        for (std::uint32_t row : linked.rows) found.rows.push_back(rows[row]);
        found.values.insert(found.values.end(), linked.values.begin(), linked.values.end());
    }
}

void PathEvaluator::starts(const PathExpression& path, std::vector<TermId>& out) {
    KeyTable seen;
    seen.reset(1);
    collect_starts(path, Dir::Out, seen);
    out.insert(out.end(), seen.column(0).begin(), seen.column(0).end());
    seen.release(run_->budget());
}

void PathEvaluator::collect_starts(const PathExpression& path, Dir dir, KeyTable& seen) {
    using Kind = PathExpression::Kind;
    std::vector<EdgeSet> sets;
    if (path.nullable() || path.kind == Kind::Negated) {
        dataset_.resolve(*run_, 0, graph_, sets);
        bool both = path.nullable() || (path.forward && path.inverse);
        if (both || path.forward) add_vertices(sets, dir, seen);
        if (both || path.inverse) add_vertices(sets, flip(dir), seen);
        return;
    }
    switch (path.kind) {
        case Kind::Link:
            dataset_.resolve(*run_, path.predicate, graph_, sets);
            return add_vertices(sets, dir, seen);
        case Kind::Inverse:
            return collect_starts(path.parts[0], flip(dir), seen);
        case Kind::Sequence:  // if the first part may have length zero, all nodes are a superset
            return collect_starts(dir == Dir::Out ? path.parts.front() : path.parts.back(), dir, seen);
        default:
            for (const PathExpression& part : path.parts) collect_starts(part, dir, seen);
    }
}

void PathEvaluator::add_vertices(std::span<const EdgeSet> sets, Dir dir, KeyTable& seen) {
    std::vector<TermId> vertices;
    std::vector<std::uint32_t> ids;
    for (const EdgeSet& set : sets) {
        vertices.clear();
        set.source->vertices(set.label, dir, vertices);
        ids.resize(vertices.size());
        std::array<const TermId*, 1> keys{vertices.data()};
        seen.assign(keys, vertices.size(), ids.data(), run_->budget());
    }
}

}  // namespace penstock::exec
