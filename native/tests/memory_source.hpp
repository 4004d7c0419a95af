// A Source in ordinary containers: the stored graph or a window of tests that are not about storage.
#pragma once

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "source.hpp"
#include "store/labels.hpp"

namespace penstock::test {

class MemorySource final : public Source {
public:
    explicit MemorySource(LabelTable& labels) : labels_(labels) {}

    /// Adds a triple to a graph; its latest time is the greatest of those given.
    void add(TermId s, TermId p, TermId o, TermId graph = 0, std::int64_t time = kNever) {
        Label label = labels_.intern(graph, p);
        auto &objects = out_[{label, s}], &subjects = in_[{label, o}];
        LabelStats& stats = stats_[label];
        stats.subjects += objects.empty();
        stats.objects += subjects.empty();
        stats.edges += objects.insert(o).second;
        subjects.insert(s);
        auto [at, is_new] = times_.try_emplace({s, label, o}, time);
        at->second = std::max(at->second, time);
    }

    void expand(std::span<const TermId> keys, Label label, Dir dir, Matches& out) const override {
        for (std::size_t i = 0; i < keys.size(); ++i)
            for (TermId neighbour : neighbours(keys[i], label, dir)) {
                out.rows.push_back(static_cast<std::uint32_t>(i));
                out.values.push_back(neighbour);
            }
    }
    void contains(std::span<const TermId> subjects, Label label, std::span<const TermId> objects,
                  std::span<std::uint8_t> found) const override {
        for (std::size_t i = 0; i < subjects.size(); ++i)
            if (neighbours(subjects[i], label, Dir::Out).count(objects[i])) found[i] |= 1;
    }
    void vertices(Label label, Dir dir, std::vector<TermId>& out) const override {
        for (auto at = index(dir).lower_bound({label, 0}); at != index(dir).end() && at->first.first == label; ++at)
            out.push_back(at->first.second);
    }
    void labels_of(std::span<const TermId> keys, Dir dir, std::vector<std::uint32_t>& rows,
                   std::vector<Label>& labels) const override {
        for (std::size_t i = 0; i < keys.size(); ++i)
            for (const auto& [label, stats] : stats_)
                if (index(dir).count({label, keys[i]})) {
                    rows.push_back(static_cast<std::uint32_t>(i));
                    labels.push_back(label);
                }
    }
    void edges(Label label, std::vector<TermId>& subjects, std::vector<TermId>& objects) const override {
        for (auto at = out_.lower_bound({label, 0}); at != out_.end() && at->first.first == label; ++at)
            for (TermId object : at->second) {
                subjects.push_back(at->first.second);
                objects.push_back(object);
            }
    }
    void labels(std::vector<Label>& out) const override {
        for (const auto& [label, stats] : stats_) out.push_back(label);
    }
    LabelStats stats(Label label) const override {
        auto found = stats_.find(label);
        return found == stats_.end() ? LabelStats{} : found->second;
    }
    std::uint64_t degree(TermId vertex, Label label, Dir dir) const override {
        return neighbours(vertex, label, dir).size();
    }
    std::int64_t latest(TermId s, Label label, TermId o) const override {
        auto found = times_.find({s, label, o});
        return found == times_.end() ? kNever : found->second;
    }

private:
    using Index = std::map<std::pair<Label, TermId>, std::set<TermId>>;
    const Index& index(Dir dir) const { return dir == Dir::Out ? out_ : in_; }
    const std::set<TermId>& neighbours(TermId vertex, Label label, Dir dir) const {
        static const std::set<TermId> none;
        auto found = index(dir).find({label, vertex});
        return found == index(dir).end() ? none : found->second;
    }

    LabelTable& labels_;
    Index out_, in_;
    std::map<Label, LabelStats> stats_;
    std::map<std::tuple<TermId, Label, TermId>, std::int64_t> times_;
};

}  // namespace penstock::test
