// Edge labels: (graph, predicate) <-> 31-bit number, shared by all shards of an engine (ADR 2).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <shared_mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "source.hpp"

namespace penstock {

/// Thread-safe. Label numbers are dense from 1 and never reused. LimitError beyond `limit` labels.
class LabelTable {
public:
    explicit LabelTable(std::size_t limit = std::size_t{1} << 22) : limit_(limit) {}

    /// A number that distinguishes this table from every other table of the process, also from later tables at the same
    /// address.
    std::uint64_t identity() const { return identity_; }

    Label intern(TermId graph, TermId predicate);
    Label find(TermId graph, TermId predicate) const;   // 0 if unknown
    std::pair<TermId, TermId> pair(Label label) const;  // (graph, predicate)
    TermId graph(Label label) const { return pair(label).first; }
    TermId predicate(Label label) const { return pair(label).second; }
    void with_predicate(TermId predicate, std::vector<Label>& out) const;
    void with_graph(TermId graph, std::vector<Label>& out) const;
    std::vector<TermId> graphs() const;  // named graphs only (0 left out), in order of creation
    std::size_t size() const;            // highest label

private:
    static std::uint64_t next_identity() {
        static std::atomic<std::uint64_t> last{0};
        return last.fetch_add(1, std::memory_order_relaxed) + 1;  // unique only; orders nothing
    }

    const std::uint64_t identity_ = next_identity();
    std::size_t limit_;
    mutable std::shared_mutex mutex_;
    std::vector<std::pair<TermId, TermId>> pairs_;  // index = label - 1
    struct PairHash {
        std::size_t operator()(const std::pair<TermId, TermId>& pair) const {
            return (pair.first * 0x9E3779B97F4A7C15ull) ^ (pair.second * 0xC2B2AE3D27D4EB4Full);
        }
    };
    std::unordered_map<std::pair<TermId, TermId>, Label, PairHash> by_pair_;
    std::unordered_map<TermId, std::vector<Label>> by_predicate_, by_graph_;
    std::vector<TermId> graphs_;
};

/// The part of a stored graph that plans depend on: its labels.
class Labelled {
public:
    virtual ~Labelled() = default;
    virtual LabelTable& labels() = 0;

protected:
    Labelled() = default;
    Labelled(const Labelled&) = default;
    Labelled& operator=(const Labelled&) = default;
};

}  // namespace penstock
