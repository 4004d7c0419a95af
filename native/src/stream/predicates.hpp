// The known predicates of a stream: for each a number for columns, its labels, and whether its tuples are absorbed.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "rdf/dictionary.hpp"
#include "store/labels.hpp"
#include "stream/stream.hpp"

namespace penstock {

struct StreamPredicate {
    TermId term = 0;
    Label window = 0;    // (0, predicate)
    Label absorbed = 0;  // (absorb_graph, predicate); 0 for a timing predicate
};

/// Numbers are dense from 0 and never reused. The label table bounds their number.
class StreamPredicates {
public:
    StreamPredicates(LabelTable& labels, Dictionary& dictionary, const StreamOptions& options)
        : labels_(labels),
          dictionary_(dictionary),
          options_(options),
          timing_(options.timing.begin(), options.timing.end()) {}

    /// The predicate's number. LimitError if the label table is full. DataError if the predicate is new, not `checked`,
    /// and not the id of a term; predicates added before the error remain.
    std::uint32_t number(TermId predicate, bool checked = true) {
        if (last_ < known_.size() && known_[last_].term == predicate) return last_;
        const auto found = numbers_.find(predicate);
        if (found != numbers_.end()) return last_ = found->second;
        if (!checked) dictionary_.check(&predicate, 1);
        return last_ = learn(predicate);
    }
    const StreamPredicate& operator[](std::uint32_t number) const { return known_[number]; }
    std::size_t size() const { return known_.size(); }

private:
    std::uint32_t learn(TermId predicate) {
        StreamPredicate learnt{predicate, labels_.intern(0, predicate), 0};
        if (!options_.all_timing && !timing_.contains(predicate)) {
            learnt.absorbed = labels_.intern(options_.absorb_graph, predicate);
        }
        // Labels are permanent, so the term of the predicate must also be permanent.
        dictionary_.keep(&predicate, 1);
        const auto number = static_cast<std::uint32_t>(known_.size());
        known_.push_back(learnt);
        numbers_.emplace(predicate, number);
        return number;
    }

    LabelTable& labels_;
    Dictionary& dictionary_;
    const StreamOptions& options_;
    std::unordered_set<TermId> timing_;
    std::vector<StreamPredicate> known_;
    std::unordered_map<TermId, std::uint32_t> numbers_;
    std::uint32_t last_ = 0;
};

}  // namespace penstock
