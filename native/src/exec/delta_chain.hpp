// A chain of the input of a maintained operator, and the terms of its change (delta_plan.hpp).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "exec/delta_plan.hpp"

namespace penstock::exec::delta {

using Slots = std::set<std::uint64_t>;

inline Slots common(const Slots& a, const Slots& b) {
    Slots both;
    std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), std::inserter(both, both.end()));
    return both;
}

/// A node with other values of some members, and without one member.
Spec replaced(const Spec& node, std::vector<std::pair<std::string, Spec>> members, std::string_view without = {});

struct Scan {
    const Spec* node;
    std::size_t set;  // number of the union that it reads
    Slots variables;
};

/// A filter, an extension, or a test: EXISTS or OPTIONAL, whose output depends on the matches of a row.
struct Step {
    const Spec* node;
    Slots uses = {};                            // what must be bound before it
    Slots binds = {};                           // what it binds
    std::vector<Scan> inner = {};               // of a test, from its outer rows upwards
    std::vector<const Spec*> inner_nodes = {};  // all nodes of the inner side, in the same order
    std::vector<Step> conditions = {};          // the filters of the inner side, and the condition of an OPTIONAL
    bool is_test() const { return !inner_nodes.empty(); }
    bool is_optional() const { return node->at("op").as_string() == "optional"; }
};

/// The content that a factor of a term reads. Either: the union of the present content and the previous content.
enum class Content : std::uint8_t { Now, Before, Either, Changed };

/// The data that the chains of one input share.
struct Shared {
    DeltaSources sources;
    std::vector<DeltaUnion> unions;
};

class Chain {
public:
    Chain(const Spec& input, const std::vector<Slot>& seed, Shared& shared)
        : seed_(seed.begin(), seed.end()), bound_(seed_), shared_(shared) {
        sound_ = read(input);
    }
    /// Call when all chains have been read. Returns false if the chain cannot be maintained.
    bool add_terms(const Spec& output, DeltaPlan& plan) const;

private:
    bool read(const Spec& input);
    bool read_scan(const Spec& node, std::vector<Scan>& out);
    std::size_t union_of(const Spec& scan);
    bool read_node(const Spec& node);
    bool read_test(const Spec& node);
    bool read_construct(const Spec& node);
    bool read_inner(Step& step);
    bool use(const Slots& slots);
    bool bind(std::uint64_t slot);
    void drop_all_but(const Spec& slots);

    /// A scan or a step of a term, and the content that it reads.
    struct ReadScan {
        const Scan* scan;
        Content content;
    };
    struct ReadStep {
        const Step* step;
        Content content = Content::Now;
    };
    using ReadScans = std::vector<ReadScan>;
    using ReadSteps = std::vector<ReadStep>;

    Spec output_of(Spec rows, const Spec& slots) const;
    Spec source_spec(const Scan& scan, Content content) const;
    Spec scan_spec(const Scan& scan, Content content, Spec in) const;
    Spec inner_spec(const Step& step, Content content) const;
    Spec step_spec(const ReadStep& read, Spec in) const;
    Spec match_spec(const Step& step, Content content, bool has_match, Spec in) const;
    ReadScans all_scans(Content content) const;
    ReadSteps steps_beside(std::size_t number) const;
    Spec join(ReadScans scans, ReadSteps steps, Slots bound, Spec in) const;
    void place_steps(ReadSteps& pending, Slots& bound, Spec& node) const;
    void add_scan_term(std::size_t number, const Spec& output, DeltaPlan& plan) const;
    bool add_test_terms(std::size_t number, const Spec& output, DeltaPlan& plan) const;
    void add_match_terms(std::size_t number, const Spec& output, DeltaPlan& plan) const;
    DeltaTerm crossing_term(std::size_t number, const Spec& keys, const Spec& output) const;
    DeltaTerm affected_term(std::size_t number, const Spec& rows, const Spec& output) const;
    Spec changed_rows(const Step& step, bool keys) const;
    Spec from_changed(const Step& step, std::size_t changed, const Slots& required, bool all, Slots& bound) const;
    Spec affected(const Step& step, std::size_t changed) const;
    Spec affected_keys(const Step& step, std::size_t changed) const;

    Slots seed_, bound_, dropped_, extended_, free_;
    Slots optional_;  // unbound in some rows
    Slots scanned_;   // the seed's slots and those of scans: rows are distinct in them
    const Spec* leaf_ = nullptr;
    const Spec* construct_ = nullptr;  // the last node, which gives triples of the rows
    std::vector<Scan> scans_;
    std::vector<Step> steps_;
    Shared& shared_;
    bool sound_ = false;
    mutable bool placed_ = true;  // whether every term has all steps
};

}  // namespace penstock::exec::delta
