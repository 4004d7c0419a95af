// The contents of a saved store's manifest, apart from file names: labels, the commits that bounds on streams can still
// exclude, unused memory, and lists that wait to be rewritten. The `get_` functions throw StorageError.
#pragma once

#include <vector>

#include "bytes.hpp"
#include "store/history.hpp"
#include "store/labels.hpp"
#include "store/region.hpp"
#include "store/shard.hpp"

namespace penstock {

void put_labels(ByteWriter& out, const LabelTable& labels);
void get_labels(ByteReader& in, LabelTable& labels);

void put_history(ByteWriter& out, const CommitHistory& history);
void get_history(ByteReader& in, std::size_t shards, CommitHistory& history);

void put_garbage(ByteWriter& out, const std::vector<Garbage>& lists);
std::vector<Garbage> get_garbage(ByteReader& in, std::uint64_t size);  // in a region of `size` bytes

void put_spans(ByteWriter& out, const std::vector<Span>& spans);
std::vector<Span> get_spans(ByteReader& in, std::uint64_t size);  // in a region of `size` bytes

}  // namespace penstock
