#include "remote/remote_slices.hpp"

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>

#include "errors.hpp"
#include "stream/slice.hpp"

namespace penstock::remote {

using dataplane::Read;

namespace {

constexpr std::uint64_t kCountOffset = SliceIndex::kOffset;
constexpr std::uint64_t kEntriesOffset = SliceIndex::kOffset + offsetof(SliceIndex, entries);

}  // namespace

/// One node's part of a batch.
struct RemoteSlices::Part {
    dataplane::RegionId region;
    SliceIndex::Entry entry;
    std::unique_ptr<std::byte[]> bytes;
};

/// The entries of all nodes' slices up to the batch that are at or after the cursors; advances the cursors.
std::vector<RemoteSlices::Part> RemoteSlices::find_parts(std::map<dataplane::Node, Cursor>& cursors,
                                                         std::int64_t batch) {
    std::vector<std::uint64_t> counts(cursors.size());
    std::vector<Read> reads;
    for (auto& [node, cursor] : cursors)
        reads.push_back({cursor.region.id, kCountOffset, 8, reinterpret_cast<std::byte*>(&counts[reads.size()])});
    store_.read(reads);

    std::vector<std::size_t> cut;
    std::vector<SliceIndex::Entry> page(cursors.size() * SliceIndex::kSlices);
    reads.clear();
    std::size_t at = 0;
    for (auto& [node, cursor] : cursors) {
        SliceIndex::Entry* entries = &page[at * SliceIndex::kSlices];
        const std::uint64_t count = counts[at++];
        if (count - cursor.count > SliceIndex::kSlices) {  // the index has only the last kSlices entries
            cursor.count = count - SliceIndex::kSlices;
            cut.push_back(at - 1);
        }
        for (std::uint64_t n = cursor.count; n < count;) {  // up to the index's wrap-around
            const std::uint64_t place = n % SliceIndex::kSlices;
            const std::uint64_t run = std::min(count - n, SliceIndex::kSlices - place);
            reads.push_back({cursor.region.id, kEntriesOffset + place * sizeof(SliceIndex::Entry),
                             static_cast<std::uint32_t>(run * sizeof(SliceIndex::Entry)),
                             reinterpret_cast<std::byte*>(&entries[place])});
            n += run;
        }
    }
    if (!reads.empty()) store_.read(reads);

    std::vector<Part> parts;
    at = 0;
    for (auto& [node, cursor] : cursors) {
        const SliceIndex::Entry* entries = &page[at * SliceIndex::kSlices];
        const bool lacking = std::find(cut.begin(), cut.end(), at) != cut.end();
        if (lacking && entries[cursor.count % SliceIndex::kSlices].batch > std::max(closed_, released_) + 1)
            throw StorageError("stream " + std::to_string(stream_) + " has gone on too far to be followed from here");
        for (const std::uint64_t count = counts[at++]; cursor.count < count; ++cursor.count) {
            const SliceIndex::Entry& entry = entries[cursor.count % SliceIndex::kSlices];
            if (entry.batch > batch) break;
            if (entry.batch > std::max(closed_, released_)) parts.push_back({cursor.region.id, entry, nullptr});
        }
    }
    return parts;
}

// The sequence of a slice's segment is read after the copy. If it differs from the one in the index, the segment was
// recycled (slice_ring.hpp gives the argument), and the index entry may belong to another slice, too.
void RemoteSlices::copy_parts(std::vector<Part>& parts) {
    std::vector<Read> reads;
    std::size_t total = bytes();
    for (Part& part : parts) {
        const std::uint64_t bytes = part.entry.bytes;
        if (bytes < sizeof(SliceHeader) || bytes % 8 != 0 || bytes > std::uint64_t{1} << 40)
            throw StorageError("the index of stream " + std::to_string(stream_) + " makes no sense");
        if (memory_bytes_ != 0 && (total += bytes) > memory_bytes_)
            throw LimitError("copies of the slices of stream " + std::to_string(stream_) + " would need more than " +
                             std::to_string(memory_bytes_) + " bytes");
        part.bytes = std::make_unique_for_overwrite<std::byte[]>(bytes);
        for (std::uint64_t done = 0; done < bytes; done += dataplane::kMaxReadBytes)
            reads.push_back(
                {part.region, part.entry.offset + done,
                 static_cast<std::uint32_t>(std::min<std::uint64_t>(bytes - done, dataplane::kMaxReadBytes)),
                 part.bytes.get() + done});
    }
    if (reads.empty()) return;
    store_.read(reads);
    std::vector<std::uint64_t> sequences(parts.size());
    reads.clear();
    for (std::size_t i = 0; i < parts.size(); ++i)
        reads.push_back({parts[i].region, parts[i].entry.segment + offsetof(SegmentHeader, sequence), 8,
                         reinterpret_cast<std::byte*>(&sequences[i])});
    store_.read(reads);
    for (std::size_t i = 0; i < parts.size(); ++i) {
        const SliceHeader& header = slice_header(parts[i].bytes.get());
        const SliceIndex::Entry& entry = parts[i].entry;
        if (sequences[i] != entry.sequence || header.sequence != entry.sequence || header.batch != entry.batch ||
            header.bytes != entry.bytes || part_bytes(header.tuples) != entry.bytes)
            throw StorageError("batch " + std::to_string(entry.batch) + " of stream " + std::to_string(stream_) +
                               " was recycled before it was copied");
    }
}

RemoteSlices::Slice RemoteSlices::merge(std::span<const Part> parts) {
    struct Row {
        std::uint32_t position, part, row;
    };
    std::vector<Row> rows;
    for (std::uint32_t i = 0; i < parts.size(); ++i) {
        const auto positions = part_positions(parts[i].bytes.get());
        for (std::uint32_t row = 0; row < positions.size(); ++row) rows.push_back({positions[row], i, row});
    }
    std::sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) { return a.position < b.position; });
    Slice slice{parts[0].entry.batch, {}, {}, {}, {}};
    std::vector<SliceView> views;
    for (const Part& part : parts) views.push_back(slice_view(part.bytes.get()));
    for (const Row& row : rows) {
        const SliceView& view = views[row.part];
        slice.ts.push_back(view.ts[row.row]);
        slice.s.push_back(view.s[row.row]);
        slice.o.push_back(view.o[row.row]);
        slice.label.push_back(view.label[row.row]);
    }
    return slice;
}

void RemoteSlices::take(std::int64_t batch) {
    if (batch <= closed_) return;
    auto cursors = cursors_;
    for (const auto& [node, region] : store_.slice_regions(stream_)) {
        Cursor& cursor = cursors[node];
        if (cursor.region != region) cursor = {region, 0};  // a restarted node publishes from the beginning
    }
    std::vector<Part> parts = find_parts(cursors, batch);
    copy_parts(parts);
    std::stable_sort(parts.begin(), parts.end(),
                     [](const Part& a, const Part& b) { return a.entry.batch < b.entry.batch; });
    for (auto first = parts.begin(); first != parts.end();) {
        const auto end =
            std::find_if(first, parts.end(), [&](const Part& part) { return part.entry.batch != first->entry.batch; });
        slices_.push_back(merge({first, end}));
        tuples_ += slices_.back().ts.size();
        first = end;
    }
    cursors_ = std::move(cursors);
    closed_ = batch;
}

void RemoteSlices::release(std::int64_t batch) {
    released_ = std::max(released_, batch);
    for (; !slices_.empty() && slices_.front().batch <= batch; slices_.pop_front())
        tuples_ -= slices_.front().ts.size();
}

void RemoteSlices::slices(std::int64_t first, std::int64_t last, const std::function<void(const SliceView&)>& f) const {
    auto slice = std::lower_bound(slices_.begin(), slices_.end(), first,
                                  [](const Slice& a, std::int64_t b) { return a.batch < b; });
    for (; slice != slices_.end() && slice->batch <= last; ++slice)
        f({slice->batch, slice->ts, slice->s, slice->o, slice->label});
}

}  // namespace penstock::remote
