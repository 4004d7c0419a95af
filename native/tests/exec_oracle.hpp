// Evaluates a plan's spec row at a time, following docs/plan-format.md and SPARQL 1.1 §18: slow, and written without
// regard to how the executor does it.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "rdf/dictionary.hpp"
#include "source.hpp"
#include "spec.hpp"
#include "store/labels.hpp"

namespace penstock::test {

using Solution = std::map<std::uint64_t, TermId>;  // bound variables only
using Solutions = std::vector<Solution>;

class Oracle {
public:
    struct Quad {
        TermId s, p, o, g;
        auto operator<=>(const Quad&) const = default;
    };
    /// Sources by index; the graph of a window's quads is 0.
    std::vector<std::vector<Quad>> sources;
    Solutions seed{{}};

    Solutions run(const Spec& plan) {
        plan_ = &plan;
        return eval(plan.at("root"), nullptr);
    }

private:
    using Triples = std::set<std::tuple<TermId, TermId, TermId>>;

    // ---- data
    /// The graphs of a dataset by name; without a graph variable one graph under name 0.
    std::map<TermId, Triples> graphs(const Spec& dataset, bool named) const {
        std::map<TermId, Triples> found;
        if (!named) found[0];
        for (const Spec& part : dataset.as_list()) {
            std::size_t source = part.at("src").as_int();
            TermId name = part.find("name") ? part.at("name").as_int() : 0;
            const Spec* list = part.find("graphs");
            bool all_named = list != nullptr && list->is_string();
            std::set<TermId> graphs;
            if (list != nullptr && !all_named)
                for (const Spec& graph : list->as_list()) graphs.insert(graph.as_int());
            if (named)
                for (TermId graph : graphs)
                    if ((name ? name : graph) != 0) found[name ? name : graph];
            if (named && source != 0) found[name];
            for (const Quad& q : sources[source]) {
                if (source == 0 && (all_named ? q.g == 0 : graphs.count(q.g) == 0)) continue;
                TermId key = !named ? 0 : name != 0 ? name : q.g;
                if (named && key == 0) continue;
                found[key].insert({q.s, q.p, q.o});
            }
        }
        return found;
    }

    static TermId term(const Spec& spec, const Solution& row) {
        if (const Spec* id = spec.find("id")) return id->as_int();
        auto bound = row.find(spec.at("var").as_int());
        return bound == row.end() ? 0 : bound->second;
    }
    static bool unify(const Spec& spec, TermId value, Solution& row) {
        if (const Spec* id = spec.find("id")) return id->as_int() == value;
        return row.try_emplace(spec.at("var").as_int(), value).first->second == value;
    }
    static bool compatible(const Solution& a, const Solution& b) {
        for (auto [slot, value] : a)
            if (auto other = b.find(slot); other != b.end() && other->second != value) return false;
        return true;
    }
    static Solution merged(const Solution& a, const Solution& b) {
        Solution both = a;
        both.insert(b.begin(), b.end());
        return both;
    }

    // ---- expressions: 1 true, 0 false, nothing for an error
    std::optional<bool> truth(const Spec& e, const Solution& row) {
        if (const Spec* number = e.find("exists")) {
            const Spec& sub = plan_->at("subplans").as_list()[number->as_int()];
            Solution outer = row;
            outer[sub.at("row").as_int()] = 1;
            return !eval(sub.at("node"), &outer).empty() != e.at("not").as_bool();
        }
        const std::string& name = e.at("call").as_string();
        const Spec::List& args = e.at("args").as_list();
        if (name == "bound") return term(args[0], row) != 0;
        if (name == "not") {
            auto x = truth(args[0], row);
            return x ? std::optional(!*x) : std::nullopt;
        }
        if (name == "=") {
            TermId a = term(args[0], row), b = term(args[1], row);
            return a == 0 || b == 0 ? std::nullopt : std::optional(a == b);
        }
        auto a = truth(args[0], row), b = truth(args[1], row);
        bool decisive = name == "or";
        if ((a && *a == decisive) || (b && *b == decisive)) return decisive;
        return a && b ? std::optional(!decisive) : std::nullopt;
    }
    bool holds(const Spec* e, const Solution& row) { return e == nullptr || truth(*e, row).value_or(false); }

    // ---- paths, by the definitions of §18.4: pairs between two ends, each a term or a variable (0)
    using Pairs = std::vector<std::pair<TermId, TermId>>;

    static std::set<TermId> nodes_of(const Triples& graph) {
        std::set<TermId> nodes;
        for (auto [s, p, o] : graph) nodes.insert({s, o});
        return nodes;
    }
    static Pairs zero_length(TermId from, TermId to, const Triples& graph) {
        if (from != 0 && to != 0) return from == to ? Pairs{{from, from}} : Pairs{};
        if (from != 0 || to != 0) return {{from | to, from | to}};
        Pairs pairs;
        for (TermId node : nodes_of(graph)) pairs.emplace_back(node, node);
        return pairs;
    }
    static Pairs turned(Pairs pairs) {
        for (auto& [a, b] : pairs) std::swap(a, b);
        return pairs;
    }
    static Pairs distinct(Pairs pairs) {
        std::sort(pairs.begin(), pairs.end());
        pairs.erase(std::unique(pairs.begin(), pairs.end()), pairs.end());
        return pairs;
    }

    Pairs path_pairs(const Spec& path, TermId from, TermId to, const Triples& graph) {
        Pairs pairs;
        auto add = [&](const Pairs& more) { pairs.insert(pairs.end(), more.begin(), more.end()); };
        auto matches = [&](TermId a, TermId b) { return (from == 0 || from == a) && (to == 0 || to == b); };
        bool is_negated =
            std::any_of(path.as_dict().begin(), path.as_dict().end(), [](auto& m) { return m.first == "nps"; });
        if (is_negated) {
            auto side = [&](const Spec* excluded, bool along) {
                if (excluded == nullptr) return;
                for (auto [s, p, o] : graph) {
                    bool out = std::any_of(excluded->as_list().begin(), excluded->as_list().end(),
                                           [p = p](const Spec& id) { return id.as_int() == p; });
                    TermId a = along ? s : o, b = along ? o : s;
                    if (!out && matches(a, b)) pairs.emplace_back(a, b);
                }
            };
            side(path.find("nps"), true);
            side(path.find("inv"), false);
        } else if (const Spec* link = path.find("link")) {
            for (auto [s, p, o] : graph)
                if (p == link->as_int() && matches(s, o)) pairs.emplace_back(s, o);
        } else if (const Spec* inv = path.find("inv")) {
            return turned(path_pairs(*inv, to, from, graph));
        } else if (const Spec* alt = path.find("alt")) {
            for (const Spec& part : alt->as_list()) add(path_pairs(part, from, to, graph));
        } else if (const Spec* seq = path.find("seq")) {
            const Spec::List& parts = seq->as_list();
            pairs = path_pairs(parts[0], from, parts.size() == 1 ? to : 0, graph);
            for (std::size_t i = 1; i < parts.size(); ++i) {
                Pairs next = path_pairs(parts[i], 0, i + 1 == parts.size() ? to : 0, graph), joined;
                for (auto [a, b] : pairs)
                    for (auto [c, d] : next)
                        if (b == c) joined.emplace_back(a, d);
                pairs = joined;
            }
        } else if (const Spec* opt = path.find("opt")) {
            pairs = path_pairs(*opt, from, to, graph);
            add(zero_length(from, to, graph));
            return distinct(pairs);
        } else {
            const Spec* star = path.find("star");
            const Spec& step = star != nullptr ? *star : path.at("plus");
            if (from == 0 && to != 0) return turned(path_pairs(turned_closure(step, star != nullptr), to, 0, graph));
            std::set<TermId> starts = nodes_of(graph);
            if (from != 0) starts = {from};
            for (TermId start : starts) {
                std::set<TermId> seen;
                std::function<void(TermId)> visit = [&](TermId node) {
                    if (!seen.insert(node).second) return;
                    for (auto [a, b] : path_pairs(step, node, 0, graph)) visit(b);
                };
                if (star != nullptr)
                    visit(start);
                else
                    for (auto [a, b] : path_pairs(step, start, 0, graph)) visit(b);
                for (TermId end : seen)
                    if (matches(start, end)) pairs.emplace_back(start, end);
            }
        }
        return pairs;
    }
    static Spec turned_closure(const Spec& step, bool star) {
        return Spec::Dict{{star ? "star" : "plus", Spec::Dict{{"inv", step}}}};
    }

    void path_matches(const Spec& node, const Solution& row, const Triples& graph, const Solution& base,
                      Solutions& out) {
        // Ends that are bound by the row are variables if the plan declares it, otherwise terms.
        bool variables = node.at("nodes_only").as_bool();
        auto end = [&](const Spec& spec) { return variables && spec.find("var") != nullptr ? 0 : term(spec, row); };
        for (auto [from, to] : path_pairs(node.at("path"), end(node.at("s")), end(node.at("o")), graph)) {
            Solution made = base;
            if (unify(node.at("s"), from, made) && unify(node.at("o"), to, made)) out.push_back(made);
        }
    }

    // ---- nodes
    Solutions eval(const Spec& node, const Solution* outer) {
        const std::string& op = node.at("op").as_string();
        auto child = [&](const char* name) { return eval(node.at(name), outer); };
        Solutions out;
        if (op == "seed") return seed;
        if (op == "outer") return {*outer};
        if (op == "empty") return {};
        if (op == "reduced") return child("in");
        if (op == "values") return values(node);
        if (op == "scan" || op == "path" || op == "graphs") return patterns(op, node, child("in"));
        if (op == "filter") {
            for (Solution& row : child("in"))
                if (holds(node.find("expr"), row)) out.push_back(row);
        } else if (op == "extend") {
            for (Solution& row : child("in")) {
                if (TermId value = term(node.at("expr"), row)) row[node.at("slot").as_int()] = value;
                out.push_back(row);
            }
        } else if (op == "join" || op == "leftjoin") {
            Solutions right = child("right");
            for (const Solution& l : child("left")) {
                bool found = false;
                for (const Solution& r : right)
                    if (compatible(l, r) && holds(node.find("expr"), merged(l, r))) {
                        out.push_back(merged(l, r));
                        found = true;
                    }
                if (!found && op == "leftjoin") out.push_back(l);
            }
        } else if (op == "minus") {
            return minus(node, child("left"), child("right"));
        } else if (op == "optional" || op == "lateral" || op == "semijoin") {
            return correlated(op, node, child("in"));
        } else if (op == "union") {
            for (const Spec& input : node.at("inputs").as_list())
                for (Solution& row : eval(input, outer)) out.push_back(row);
        } else if (op == "distinct") {
            Solutions rows = child("in");
            std::set<Solution> distinct(rows.begin(), rows.end());
            out.assign(distinct.begin(), distinct.end());
        } else if (op == "project") {
            for (const Solution& row : child("in")) {
                Solution projected;
                for (const Spec& slot : node.at("slots").as_list())
                    if (auto found = row.find(slot.as_int()); found != row.end()) projected.insert(*found);
                out.push_back(projected);
            }
        } else if (op == "group") {
            return group(node, child("in"));
        } else {
            throw Error("oracle: " + op);
        }
        return out;
    }

    Solutions values(const Spec& node) {
        Solutions out;
        for (const Spec& cells : node.at("rows").as_list()) {
            Solution row;
            for (std::size_t c = 0; c < cells.as_list().size(); ++c)
                if (TermId id = cells.as_list()[c].as_int()) row[node.at("slots").as_list()[c].as_int()] = id;
            out.push_back(row);
        }
        return out;
    }

    Solutions patterns(const std::string& op, const Spec& node, const Solutions& in) {
        Solutions out;
        const Spec* graph_slot = node.find("graph");
        auto all = graphs(node.at("dataset"), graph_slot != nullptr);
        for (const Solution& row : in)
            for (const auto& [name, triples] : all) {
                Solution base = row;
                if (graph_slot != nullptr && base.try_emplace(graph_slot->as_int(), name).first->second != name)
                    continue;
                if (op == "graphs") {
                    out.push_back(base);
                } else if (op == "path") {
                    path_matches(node, row, triples, base, out);
                } else if (const Spec* any = node.at("p").find("any")) {
                    for (auto [s, o] : edges_of(any->as_list(), triples)) {
                        Solution made = base;
                        if (unify(node.at("s"), s, made) && unify(node.at("o"), o, made))
                            out.push_back(projected(node, made));
                    }
                } else if (node.at("s").find("any") != nullptr || node.at("o").find("any") != nullptr) {
                    std::set<Solution> once;
                    for (auto [s, p, o] : triples) {
                        Solution made = base;
                        if (is_end(node.at("s"), s, made) && unify(node.at("p"), p, made) &&
                            is_end(node.at("o"), o, made))
                            once.insert(made);
                    }
                    for (const Solution& made : once) out.push_back(projected(node, made));
                } else {
                    for (auto [s, p, o] : triples) {
                        Solution made = base;
                        if (unify(node.at("s"), s, made) && unify(node.at("p"), p, made) &&
                            unify(node.at("o"), o, made))
                            out.push_back(projected(node, made));
                    }
                }
            }
        return out;
    }

    bool is_end(const Spec& end, TermId value, Solution& made) {
        const Spec* any = end.find("any");
        if (any == nullptr) return unify(end, value, made);
        const Spec::List& values = any->as_list();
        return values.empty() ||
               std::any_of(values.begin(), values.end(), [&](const Spec& each) { return each.as_int() == value; });
    }

    /// The edges of alternative predicates, as a set.
    template <class Triples>
    static std::set<std::pair<TermId, TermId>> edges_of(const Spec::List& predicates, const Triples& triples) {
        std::set<std::pair<TermId, TermId>> edges;
        for (const Spec& predicate : predicates) {
            const Spec* inverse = predicate.find("inverse");
            const bool swapped = inverse != nullptr && inverse->as_bool();
            for (auto [s, p, o] : triples) {
                if (p != predicate.at("id").as_int()) continue;
                edges.insert(swapped ? std::pair{o, s} : std::pair{s, o});
            }
        }
        return edges;
    }

    static Solution projected(const Spec& scan, Solution row) {
        const Spec* keep = scan.find("keep");
        if (keep == nullptr) return row;
        std::set<std::uint64_t> slots;
        for (const Spec& slot : keep->as_list()) slots.insert(slot.as_int());
        std::erase_if(row, [&](const auto& cell) { return !slots.contains(cell.first); });
        return row;
    }

    Solutions minus(const Spec& node, const Solutions& left, const Solutions& right) {
        std::set<std::uint64_t> ignore;
        if (const Spec* slots = node.find("ignore"))
            for (const Spec& slot : slots->as_list()) ignore.insert(slot.as_int());
        Solutions out;
        for (const Solution& l : left) {
            bool removed = std::any_of(right.begin(), right.end(), [&](const Solution& r) {
                bool shares = std::any_of(l.begin(), l.end(),
                                          [&](auto& cell) { return r.count(cell.first) && !ignore.count(cell.first); });
                return shares && compatible(l, r);
            });
            if (!removed) out.push_back(l);
        }
        return out;
    }

    Solutions correlated(const std::string& op, const Spec& node, const Solutions& in) {
        Solutions out;
        std::uint64_t slot = node.at("row").as_int(), number = 0;
        for (const Solution& row : in) {
            Solution outer = row;
            outer[slot] = ++number;
            Solutions inner = eval(node.at("inner"), &outer);
            if (op == "semijoin") {
                if (inner.empty() == node.at("anti").as_bool()) out.push_back(row);
                continue;
            }
            bool found = false;
            for (Solution& match : inner) {
                if (op == "optional") match.erase(slot);
                if (!holds(node.find("expr"), match)) continue;
                found = true;
                out.push_back(match);
            }
            if (!found && op == "optional") out.push_back(row);
        }
        return out;
    }

    Solutions group(const Spec& node, const Solutions& in) {
        std::map<std::vector<TermId>, Solutions> groups;
        auto key_of = [&](const Solution& row) {
            std::vector<TermId> key;
            for (const Spec& slot : node.at("keys").as_list())
                key.push_back(row.count(slot.as_int()) ? row.at(slot.as_int()) : 0);
            return key;
        };
        if (node.at("implicit").as_bool())
            for (const Solution& row : seed) groups[key_of(row)];
        for (const Solution& row : in) groups[key_of(row)].push_back(row);
        Solutions out;
        for (const auto& [key, rows] : groups) {
            Solution made;
            for (std::size_t k = 0; k < key.size(); ++k)
                if (key[k] != 0) made[node.at("keys").as_list()[k].as_int()] = key[k];
            for (const Spec& aggregate : node.at("aggs").as_list()) {
                std::size_t count = 0;
                for (const Solution& row : rows)
                    count += aggregate.at("agg").as_string() == "count_star" || term(aggregate.at("expr"), row) != 0;
                made[aggregate.at("out").as_int()] =
                    encode_inline(std::to_string(count), std::string(kXsd) + "integer", "");
            }
            out.push_back(made);
        }
        return out;
    }

    const Spec* plan_ = nullptr;
};

}  // namespace penstock::test
