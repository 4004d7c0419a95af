#include "remote/copies.hpp"

#include <algorithm>
#include <utility>

#include "errors.hpp"
#include "mix.hpp"
#include "store/layout.hpp"

namespace penstock::remote {

namespace {

constexpr std::size_t kFirstTable = 256;
constexpr std::uint64_t kArena = 64 << 10;

}  // namespace

Copies::Range& Copies::slot(std::uint64_t key) {
    auto at = layout::reduce(mix(key), table_.size());
    while (table_[at].key != 0 && table_[at].key != key) at = at + 1 == table_.size() ? 0 : at + 1;
    return table_[at];
}

const Copies::Range* Copies::find(std::uint64_t key) const {
    if (table_.empty()) return nullptr;
    const Range& range = const_cast<Copies*>(this)->slot(key);
    return range.bytes == 0 ? nullptr : &range;
}

void Copies::reserve(std::size_t more) {
    if ((used_ + more) * 2 <= table_.size()) return;
    std::vector<Range> old(std::max(kFirstTable, (used_ + more) * 4));
    old.swap(table_);
    for (const Range& range : old)
        if (range.key != 0) slot(range.key) = range;
}

void Copies::request(std::uint64_t key, dataplane::RegionId region, std::uint64_t offset, std::uint64_t bytes) {
    reserve(1);
    Range& range = slot(key);
    if (range.key == 0) {
        range.key = key;
        ++used_;
    } else if (range.bytes == 0) {  // several keys of one operation may refer to one record
        MissingRange& before = missing_[range.missing];
        before.bytes = std::max(before.bytes, bytes);
        return;
    }
    range.bytes = 0;
    range.missing = missing_.size();
    missing_.push_back({key, region, offset, bytes});
}

std::byte* Copies::allocate(std::uint64_t bytes) {
    if ((copied_ += bytes) > kMaxBytes) throw LimitError("one step would copy more than 4 GiB from other nodes");
    if (bytes > arena_left_) {
        arena_left_ = std::max(kArena, bytes);
        arena_.push_back(std::make_unique_for_overwrite<std::byte[]>(arena_left_));
        arena_at_ = arena_.back().get();
    }
    arena_left_ -= bytes;
    return std::exchange(arena_at_, arena_at_ + bytes);
}

void Copies::fetch() {
    for (const MissingRange& missing : missing_) {
        std::byte* into = allocate(missing.bytes);
        Range& range = slot(missing.key);
        range.bytes = missing.bytes;
        range.data = into;
        for (std::uint64_t done = 0; done < missing.bytes;) {
            const auto length = std::min<std::uint64_t>(missing.bytes - done, dataplane::kMaxReadBytes);
            reads_.push_back({missing.region, missing.offset + done, static_cast<std::uint32_t>(length), into + done});
            done += length;
        }
    }
    missing_.clear();
    ++rounds_;
    reader_(reads_);
    reads_.clear();
}

}  // namespace penstock::remote
