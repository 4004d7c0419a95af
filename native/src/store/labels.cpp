#include "store/labels.hpp"

#include <mutex>

#include "errors.hpp"

namespace penstock {

Label LabelTable::find(TermId graph, TermId predicate) const {
    std::shared_lock lock(mutex_);
    auto found = by_pair_.find({graph, predicate});
    return found == by_pair_.end() ? 0 : found->second;
}

Label LabelTable::intern(TermId graph, TermId predicate) {
    if (Label known = find(graph, predicate)) return known;
    std::unique_lock lock(mutex_);
    auto [it, is_new] = by_pair_.try_emplace({graph, predicate}, static_cast<Label>(pairs_.size() + 1));
    if (!is_new) return it->second;
    if (pairs_.size() >= limit_) {
        by_pair_.erase(it);
        throw LimitError("too many distinct (graph, predicate) pairs");
    }
    Label label = it->second;
    pairs_.emplace_back(graph, predicate);
    by_predicate_[predicate].push_back(label);
    auto& of_graph = by_graph_[graph];
    if (of_graph.empty() && graph != 0) graphs_.push_back(graph);
    of_graph.push_back(label);
    return label;
}

std::pair<TermId, TermId> LabelTable::pair(Label label) const {
    std::shared_lock lock(mutex_);
    return pairs_.at(label - 1);
}

void LabelTable::with_predicate(TermId predicate, std::vector<Label>& out) const {
    std::shared_lock lock(mutex_);
    if (auto found = by_predicate_.find(predicate); found != by_predicate_.end())
        out.insert(out.end(), found->second.begin(), found->second.end());
}

void LabelTable::with_graph(TermId graph, std::vector<Label>& out) const {
    std::shared_lock lock(mutex_);
    if (auto found = by_graph_.find(graph); found != by_graph_.end())
        out.insert(out.end(), found->second.begin(), found->second.end());
}

std::vector<TermId> LabelTable::graphs() const {
    std::shared_lock lock(mutex_);
    return graphs_;
}

std::size_t LabelTable::size() const {
    std::shared_lock lock(mutex_);
    return pairs_.size();
}

}  // namespace penstock
