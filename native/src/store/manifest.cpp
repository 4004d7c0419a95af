#include "store/manifest.hpp"

#include "errors.hpp"

namespace penstock {

namespace {

void put_log(ByteWriter& out, const AppendLog& log) {
    const auto& appends = log.appends();
    out.put<std::uint64_t>(appends.size());
    for (const Append& append : appends) {
        out.put(append.entry);
        out.put(append.before);
        out.put(append.count);
        out.put(append.previous);
        out.put(append.shift);
    }
    out.put<std::uint64_t>(log.reassertions().size());
    for (const Reassertion& again : log.reassertions()) {
        out.put(again.entry);
        out.put(again.position);
    }
}

AppendLog get_log(ByteReader& in) {
    std::vector<Append> appends(in.get_count(sizeof(Append::entry)));
    for (Append& append : appends) {
        append.entry = in.get<layout::Offset>();
        append.before = in.get<std::uint32_t>();
        append.count = in.get<std::uint32_t>();
        append.previous = in.get<Snapshot>();
        append.shift = in.get<std::uint32_t>();
    }
    std::vector<Reassertion> reasserted(in.get_count(sizeof(Reassertion::entry)));
    for (Reassertion& again : reasserted) {
        again.entry = in.get<layout::Offset>();
        again.position = in.get<std::uint32_t>();
    }
    return AppendLog(std::move(appends), std::move(reasserted));
}

}  // namespace

void put_labels(ByteWriter& out, const LabelTable& labels) {
    std::vector<TermId> graphs, predicates;
    for (Label label = 1; label <= labels.size(); ++label) {
        graphs.push_back(labels.graph(label));
        predicates.push_back(labels.predicate(label));
    }
    out.put_column(std::span<const TermId>(graphs));
    out.put_column(std::span<const TermId>(predicates));
}

void get_labels(ByteReader& in, LabelTable& labels) {
    const auto graphs = in.get_column<TermId>();
    const auto predicates = in.get_column<TermId>();
    if (graphs.size() != predicates.size()) throw StorageError("the saved store has labels of unequal columns");
    for (std::size_t i = 0; i < graphs.size(); ++i)
        if (labels.intern(graphs[i], predicates[i]) != i + 1) throw StorageError("the saved store has a label twice");
}

void put_history(ByteWriter& out, const CommitHistory& history) {
    const auto holds = history.holds();
    out.put<std::uint64_t>(holds.size());
    for (const auto& hold : holds) {
        out.put(hold.stream);
        out.put(hold.released);
    }
    std::uint64_t records = 0;
    history.for_each_held([&](const CommitRecord&) { ++records; });
    out.put(records);
    history.for_each_held([&](const CommitRecord& record) {
        out.put(record.snapshot);
        out.put(record.source.stream);
        out.put(record.source.batch);
        for (const AppendLog& log : record.logs) put_log(out, log);
    });
    out.put(history.latest());
}

void get_history(ByteReader& in, std::size_t shards, CommitHistory& history) {
    std::vector<CommitHistory::Hold> holds(in.get_count(sizeof(CommitHistory::Hold::stream)));
    for (auto& hold : holds) {
        hold.stream = in.get<std::uint32_t>();
        hold.released = in.get<std::int64_t>();
    }
    std::vector<std::unique_ptr<CommitRecord>> records(in.get_count(sizeof(Snapshot)));
    for (auto& record : records) {
        record = std::make_unique<CommitRecord>();
        record->snapshot = in.get<Snapshot>();
        record->source.stream = in.get<std::uint32_t>();
        record->source.batch = in.get<std::int64_t>();
        for (std::size_t i = 0; i < shards; ++i) record->logs.push_back(get_log(in));
    }
    const auto latest = in.get<Snapshot>();
    history.restore(latest, holds, std::move(records));
}

void put_garbage(ByteWriter& out, const std::vector<Garbage>& lists) {
    out.put<std::uint64_t>(lists.size());
    for (const Garbage& list : lists) {
        out.put(list.entry);
        out.put(list.vertex);
        out.put(list.label);
        out.put(static_cast<std::uint32_t>(list.dir) | std::uint32_t{list.many} << 1);
    }
}

std::vector<Garbage> get_garbage(ByteReader& in, std::uint64_t size) {
    std::vector<Garbage> lists(in.get_count(sizeof(Garbage::entry)));
    for (Garbage& list : lists) {
        list.entry = in.get<layout::Offset>();
        list.vertex = in.get<TermId>();
        list.label = in.get<Label>();
        const auto bits = in.get<std::uint32_t>();
        list.dir = (bits & 1) == 0 ? Dir::Out : Dir::In;
        list.many = (bits & 2) != 0;
        if (list.entry < layout::kHeaderBytes || list.entry + sizeof(layout::Entry) > size)
            throw StorageError("the saved store has a list out of bounds");
    }
    return lists;
}

void put_spans(ByteWriter& out, const std::vector<Span>& spans) {
    out.put<std::uint64_t>(spans.size());
    for (const Span& span : spans) {
        out.put(span.begin);
        out.put(span.end);
    }
}

std::vector<Span> get_spans(ByteReader& in, std::uint64_t size) {
    std::vector<Span> spans(in.get_count(sizeof(Span)));
    for (Span& span : spans) {
        span.begin = in.get<layout::Offset>();
        span.end = in.get<layout::Offset>();
        if (span.begin < layout::kHeaderBytes || span.begin > span.end || span.end > size)
            throw StorageError("the saved store has unused memory out of bounds");
    }
    return spans;
}

}  // namespace penstock
