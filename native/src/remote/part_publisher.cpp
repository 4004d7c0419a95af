#include "remote/part_publisher.hpp"

#include "errors.hpp"

namespace penstock::remote {

PartPublisher::PartPublisher(const std::string& path, std::uint32_t stream, std::int64_t batch_ms, std::size_t shards,
                             std::span<const std::uint32_t> own, std::size_t memory_bytes)
    : ring_(path, stream, batch_ms), memory_bytes_(memory_bytes), own_(shards) {
    if (stream == 0 || batch_ms <= 0) throw DataError("a stream has a number and a batch interval above 0");
    for (const std::uint32_t shard : own) {
        if (shard >= shards) throw DataError("there is no shard " + std::to_string(shard));
        own_[shard] = true;
    }
    ring_.open();
}

void PartPublisher::publish(std::int64_t batch, std::span<const std::int64_t> ts, std::span<const TermId> s,
                            std::span<const TermId> o, std::span<const Label> label) {
    if (s.size() != ts.size() || o.size() != ts.size() || label.size() != ts.size())
        throw DataError("a batch's columns differ in length");
    if (batch <= last_) throw DataError("batch " + std::to_string(batch) + " is closed");
    std::vector<std::int64_t> part_ts;
    std::vector<TermId> part_s, part_o;
    std::vector<Label> part_label;
    std::vector<std::uint32_t> position;
    for (std::uint32_t row = 0; row < ts.size(); ++row) {
        if (!own_[shard_number(s[row], own_.size())]) continue;
        part_ts.push_back(ts[row]);
        part_s.push_back(s[row]);
        part_o.push_back(o[row]);
        part_label.push_back(label[row]);
        position.push_back(row);
    }
    last_ = batch;
    if (position.empty()) return;
    const std::size_t bytes = part_bytes(position.size());
    if (memory_bytes_ != 0 && ring_.used_bytes() + bytes > memory_bytes_)
        throw LimitError("the slices of a stream would need " + std::to_string(ring_.used_bytes() + bytes) +
                         " bytes, its budget is " + std::to_string(memory_bytes_));
    const SliceRing::Place place = ring_.place(bytes);
    write_part(place.data, place.sequence, batch, {part_ts, part_s, part_o, part_label, position});
    ring_.publish(place, batch);
    live_.push_back({batch, place.segment, bytes});
}

void PartPublisher::release(std::int64_t batch) {
    for (; !live_.empty() && live_.front().batch <= batch; live_.pop_front())
        ring_.free(live_.front().segment, live_.front().bytes);
}

}  // namespace penstock::remote
