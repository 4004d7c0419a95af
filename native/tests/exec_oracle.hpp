// Evaluates a plan's spec row at a time, as docs/plan-format.md and SPARQL 1.1 §18 say: slow, and written without
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
            std::set<TermId> wanted;
            if (list != nullptr && !all_named)
                for (const Spec& graph : list->as_list()) wanted.insert(graph.as_int());
            if (named)
                for (TermId graph : wanted)
                    if ((name ? name : graph) != 0) found[name ? name : graph];
            if (named && source != 0) found[name];
            for (const Quad& q : sources[source]) {
                if (source == 0 && (all_named ? q.g == 0 : wanted.count(q.g) == 0)) continue;
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

    // ---- paths: the ends reached from a node, with duplicates where SPARQL keeps them
    std::vector<TermId> reach(const Spec& path, TermId from, bool forward, const Triples& graph) {
        std::vector<TermId> ends;
        auto add = [&](const std::vector<TermId>& more) { ends.insert(ends.end(), more.begin(), more.end()); };
        bool is_negated =
            std::any_of(path.as_dict().begin(), path.as_dict().end(), [](auto& m) { return m.first == "nps"; });
        if (is_negated) {
            auto side = [&](const Spec* excluded, bool along) {
                if (excluded == nullptr) return;
                for (auto [s, p, o] : graph) {
                    bool out = std::any_of(excluded->as_list().begin(), excluded->as_list().end(),
                                           [p = p](const Spec& id) { return id.as_int() == p; });
                    if (!out && (along ? s : o) == from) ends.push_back(along ? o : s);
                }
            };
            side(path.find("nps"), forward);
            side(path.find("inv"), !forward);
        } else if (const Spec* link = path.find("link")) {
            for (auto [s, p, o] : graph)
                if (p == link->as_int() && (forward ? s : o) == from) ends.push_back(forward ? o : s);
        } else if (const Spec* inv = path.find("inv")) {
            return reach(*inv, from, !forward, graph);
        } else if (const Spec* alt = path.find("alt")) {
            for (const Spec& part : alt->as_list()) add(reach(part, from, forward, graph));
        } else if (const Spec* seq = path.find("seq")) {
            std::vector<const Spec*> parts;
            for (const Spec& part : seq->as_list()) parts.push_back(&part);
            if (!forward) std::reverse(parts.begin(), parts.end());
            ends = {from};
            for (const Spec* part : parts) {
                std::vector<TermId> next;
                for (TermId node : ends)
                    for (TermId end : reach(*part, node, forward, graph)) next.push_back(end);
                ends = next;
            }
        } else if (const Spec* opt = path.find("opt")) {
            std::set<TermId> all{from};
            for (TermId end : reach(*opt, from, forward, graph)) all.insert(end);
            ends.assign(all.begin(), all.end());
        } else {
            const Spec* star = path.find("star");
            const Spec& step = star != nullptr ? *star : path.at("plus");
            std::set<TermId> all;
            std::function<void(TermId)> visit = [&](TermId node) {
                if (!all.insert(node).second) return;
                for (TermId end : reach(step, node, forward, graph)) visit(end);
            };
            if (star != nullptr)
                visit(from);
            else
                for (TermId end : reach(step, from, forward, graph)) visit(end);
            ends.assign(all.begin(), all.end());
        }
        return ends;
    }

    void path_matches(const Spec& node, const Solution& row, const Triples& graph, const Solution& base,
                      Solutions& out) {
        TermId s = term(node.at("s"), row), o = term(node.at("o"), row);
        auto emit = [&](TermId from, TermId to) {
            Solution made = base;
            if (unify(node.at("s"), from, made) && unify(node.at("o"), to, made)) out.push_back(made);
        };
        if (s != 0 || o != 0) {
            for (TermId end : reach(node.at("path"), s != 0 ? s : o, s != 0, graph))
                emit(s != 0 ? s : end, s != 0 ? end : o);
            return;
        }
        std::set<TermId> nodes;
        for (auto [a, p, b] : graph) nodes.insert({a, b});
        for (TermId from : nodes)
            for (TermId end : reach(node.at("path"), from, true, graph)) emit(from, end);
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
                Solution kept;
                for (const Spec& slot : node.at("slots").as_list())
                    if (auto found = row.find(slot.as_int()); found != row.end()) kept.insert(*found);
                out.push_back(kept);
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
                } else {
                    for (auto [s, p, o] : triples) {
                        Solution made = base;
                        if (unify(node.at("s"), s, made) && unify(node.at("p"), p, made) &&
                            unify(node.at("o"), o, made))
                            out.push_back(made);
                    }
                }
            }
        return out;
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
