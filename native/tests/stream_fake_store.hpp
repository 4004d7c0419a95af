// Stands in for Store and Dictionary until they land. Weak, so that it never clashes with them.
#pragma once

#include <set>
#include <tuple>

#include "rdf/dictionary.hpp"
#include "store/store.hpp"

#define FAKE __attribute__((weak))

namespace penstock {

struct Store::Impl {
    std::string directory;
    LabelTable labels;
    std::set<std::tuple<TermId, Label, TermId>> edges;
    Snapshot latest = 0;
};
FAKE Store::Store(const std::string& directory, std::size_t, std::size_t)
    : impl_(new Impl{directory, LabelTable(), {}, 0}) {}
FAKE Store::~Store() = default;
FAKE LabelTable& Store::labels() { return impl_->labels; }
FAKE const std::string& Store::directory() const { return impl_->directory; }
FAKE Snapshot Store::commit(std::span<const Edge> edges, CommitSource) {
    const auto before = impl_->edges.size();
    for (const Edge& e : edges) impl_->edges.insert({e.subject, e.label, e.object});
    return impl_->latest += impl_->edges.size() > before;
}
FAKE Snapshot Store::latest() const { return impl_->latest; }
FAKE void Store::set_vts(std::uint32_t, std::int64_t) {}
FAKE std::uint64_t Store::edge_count() const { return impl_->edges.size(); }

struct Dictionary::Impl {
    Tick tick = 0;
};
FAKE Dictionary::Dictionary() : impl_(new Impl) {}
FAKE Dictionary::~Dictionary() = default;
FAKE void Dictionary::set_tick(Tick tick) { impl_->tick = tick; }
FAKE Tick Dictionary::tick() const { return impl_->tick; }
FAKE void Dictionary::touch(const TermId*, std::size_t) {}
FAKE void Dictionary::keep(const TermId*, std::size_t) {}

}  // namespace penstock
