// A store in a directory of its own, and the plain model that it is compared with.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "store/store.hpp"

namespace penstock::test {

/// A directory that goes when the test ends; in memory where the machine has /dev/shm.
class ScratchDirectory {
public:
    ScratchDirectory() {
        const bool shared = std::filesystem::exists("/dev/shm");
        std::string name = std::string(shared ? "/dev/shm" : "/tmp") + "/penstock-test-XXXXXX";
        path_ = mkdtemp(name.data());
    }
    ~ScratchDirectory() { std::filesystem::remove_all(path_); }
    ScratchDirectory(const ScratchDirectory&) = delete;
    ScratchDirectory& operator=(const ScratchDirectory&) = delete;
    const std::string& path() const { return path_; }
    std::string operator/(const std::string& name) const { return path_ + "/" + name; }

private:
    std::string path_;
};

inline constexpr std::size_t kReserve = std::size_t{1} << 32;

inline TermId iri(std::uint64_t number) { return make_id(Tag::Iri, number + 1); }

struct Fixture {
    explicit Fixture(std::size_t shards = 1, std::size_t reserve = kReserve, bool publish_logs = false)
        : options{.shards = shards, .own = {}, .reserve_bytes = reserve, .publish_logs = publish_logs},
          store(std::make_unique<Store>(scratch / "regions", options)) {}

    Label label(std::uint64_t predicate) { return store->labels().intern(0, iri(predicate)); }
    Snapshot add(std::vector<Edge> edges, std::uint32_t stream = 0, std::int64_t batch = 0) {
        return store->commit(edges, {stream, batch});
    }

    ScratchDirectory scratch;
    StoreOptions options;
    std::unique_ptr<Store> store;
};

inline std::vector<TermId> sorted(std::vector<TermId> values) {
    std::sort(values.begin(), values.end());
    return values;
}
inline std::vector<TermId> neighbours(const Source& source, TermId vertex, Label label, Dir dir) {
    Matches matches;
    source.expand({&vertex, 1}, label, dir, matches);
    return sorted(matches.values);
}
inline bool has(const Source& source, TermId s, Label label, TermId o) {
    std::uint8_t found = 0;
    source.contains({&s, 1}, label, {&o, 1}, {&found, 1});
    return found != 0;
}
inline std::vector<TermId> vertices(const Source& source, Label label, Dir dir) {
    std::vector<TermId> out;
    source.vertices(label, dir, out);
    return sorted(out);
}
inline std::vector<Label> labels_of(const Source& source, TermId vertex, Dir dir) {
    std::vector<std::uint32_t> rows;
    std::vector<Label> labels;
    source.labels_of({&vertex, 1}, dir, rows, labels);
    std::sort(labels.begin(), labels.end());
    return labels;
}

/// Every commit that was ever made; what a view should show is computed from that.
class Model {
public:
    using Triple = std::tuple<TermId, Label, TermId>;
    using Edges = std::set<Triple>;

    void add(Snapshot snapshot, const std::vector<Edge>& edges, CommitSource source) {
        for (const Edge& e : edges) commits_.push_back({snapshot, source, {e.subject, e.label, e.object}, true});
    }
    void remove(Snapshot snapshot, const std::vector<Edge>& edges, CommitSource source) {
        for (const Edge& e : edges) commits_.push_back({snapshot, source, {e.subject, e.label, e.object}, false});
    }
    Edges visible(Snapshot snapshot, const std::vector<StreamBound>& bounds) const {
        Edges edges;
        for (const auto& [sn, source, triple, adds] : commits_) {
            const auto hides = [&, &source = source](const StreamBound& bound) {
                return bound.stream == source.stream && source.batch > bound.batch;
            };
            if (sn > snapshot || std::any_of(bounds.begin(), bounds.end(), hides)) continue;
            if (adds)
                edges.insert(triple);
            else
                edges.erase(triple);
        }
        return edges;
    }

private:
    struct Commit {
        Snapshot snapshot;
        CommitSource source;
        Triple triple;
        bool adds;
    };
    std::vector<Commit> commits_;
};

/// First difference between a view and what it should show, in words; empty where there is none.
inline std::string difference(const Source& view, const Model::Edges& expected, const std::vector<TermId>& all_vertices,
                              const std::vector<Label>& all_labels) {
    using Lists = std::map<std::pair<TermId, Label>, std::vector<TermId>>;
    Lists lists[2];
    std::map<TermId, std::set<Label>> labels[2];
    std::map<Label, std::set<TermId>> index[2];
    for (const auto& [s, l, o] : expected) {
        lists[0][{s, l}].push_back(o);
        lists[1][{o, l}].push_back(s);
        labels[0][s].insert(l);
        labels[1][o].insert(l);
        index[0][l].insert(s);
        index[1][l].insert(o);
    }
    const auto where = [](const char* what, TermId v, Label l, int d) {
        return std::string(what) + " vertex " + std::to_string(payload_of(v)) + " label " + std::to_string(l) +
               " dir " + std::to_string(d);
    };
    for (int d = 0; d < 2; ++d) {
        const auto dir = static_cast<Dir>(d);
        for (Label l : all_labels) {
            const auto& want = index[d][l];
            if (vertices(view, l, dir) != std::vector<TermId>(want.begin(), want.end()))
                return where("vertices", 0, l, d);
            Matches matches;
            view.expand(all_vertices, l, dir, matches);
            Lists got;
            for (std::size_t i = 0; i < matches.rows.size(); ++i) {
                if (i > 0 && matches.rows[i] < matches.rows[i - 1]) return where("order of rows", 0, l, d);
                got[{all_vertices[matches.rows[i]], l}].push_back(matches.values[i]);
            }
            for (TermId v : all_vertices) {
                const auto found = lists[d].find({v, l});
                const std::vector<TermId> none;
                const auto& list = found == lists[d].end() ? none : found->second;
                if (sorted(got[{v, l}]) != sorted(list)) return where("list", v, l, d);
                if (view.degree(v, l, dir) != list.size()) return where("degree", v, l, d);
            }
        }
        std::vector<std::uint32_t> rows;
        std::vector<Label> found;
        view.labels_of(all_vertices, dir, rows, found);
        std::map<TermId, std::set<Label>> got;
        for (std::size_t i = 0; i < rows.size(); ++i)
            if (!got[all_vertices[rows[i]]].insert(found[i]).second)
                return where("label twice", all_vertices[rows[i]], found[i], d);
        if (got != labels[d]) return where("labels", 0, 0, d);
    }
    std::vector<TermId> s, o;
    for (TermId a : all_vertices)
        for (TermId b : all_vertices) {
            s.push_back(a);
            o.push_back(b);
        }
    std::vector<Label> present;
    view.labels(present);
    for (Label l : all_labels) {
        std::vector<std::uint8_t> found(s.size());
        view.contains(s, l, o, found);
        for (std::size_t i = 0; i < s.size(); ++i)
            if ((found[i] != 0) != expected.contains({s[i], l, o[i]})) return where("contains", s[i], l, 0);
        Model::Edges edges;
        std::vector<TermId> subjects, objects;
        view.edges(l, subjects, objects);
        for (std::size_t i = 0; i < subjects.size(); ++i)
            if (!edges.insert({subjects[i], l, objects[i]}).second) return where("edge twice", subjects[i], l, 0);
        Model::Edges want;
        for (const auto& edge : expected)
            if (std::get<1>(edge) == l) want.insert(edge);
        if (view.has_edges(l) == want.empty()) return where("has_edges", 0, l, 0);
        if (edges != want) return where("edges", 0, l, 0);
        if (!want.empty() && std::find(present.begin(), present.end(), l) == present.end())
            return where("labels()", 0, l, 0);
    }
    return {};
}

}  // namespace penstock::test
