// Store::save and Store::open. A saved store is one region file per shard and a manifest, which names them with their
// checksums and holds what lies outside the regions: labels, and the commits that streams' bounds may still exclude.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <random>

#include "bytes.hpp"
#include "errors.hpp"
#include "rdf/hash.hpp"
#include "store/files.hpp"
#include "store/store_impl.hpp"

namespace penstock {

namespace {

constexpr std::string_view kMagic = "PENSTOCK-STORE-2";
constexpr const char* kManifest = "manifest";

// ---- what lies outside the regions

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

void put_log(ByteWriter& out, const AppendLog& log) {
    const auto appends = log.appends();
    out.put<std::uint64_t>(appends.size());
    for (const Append& append : appends) {
        out.put(append.entry);
        out.put(append.before);
        out.put(append.count);
        out.put(append.previous);
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
    }
    std::vector<Reassertion> reasserted(in.get_count(sizeof(Reassertion::entry)));
    for (Reassertion& again : reasserted) {
        again.entry = in.get<layout::Offset>();
        again.position = in.get<std::uint32_t>();
    }
    return AppendLog(appends, std::move(reasserted));
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

// ---- regions

std::string random_name() {
    std::random_device device;
    char text[17];
    std::snprintf(text, sizeof text, "%08x%08x", device(), device());
    return text;
}

std::string saved_name(std::size_t shard, const std::string& generation) {
    return "shard-" + std::to_string(shard) + "." + generation + ".region";
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

// Files of earlier saves, which the new manifest does not name, and of saves that never got to theirs.
void remove_others(const std::string& directory, const std::string& generation) {
    std::error_code ignored;  // they are only in the way
    for (const auto& file : std::filesystem::directory_iterator(directory, ignored)) {
        const std::string name = file.path().filename();
        if (name.starts_with("shard-") && name.find("." + generation + ".") == std::string::npos)
            std::filesystem::remove(file.path(), ignored);
    }
}

}  // namespace

void Store::save(const std::string& directory) const {
    files::make_directory(directory);
    const std::string generation = random_name();
    ByteWriter manifest(kMagic);
    manifest.put_text(generation);
    manifest.put<std::uint64_t>(impl_->all_shards);
    manifest.put<std::uint64_t>(impl_->shards.size());
    for (std::size_t i = 0; i < impl_->shards.size(); ++i) {
        const std::uint32_t number = impl_->shards[i]->header().shard;
        const std::string_view content = impl_->shards[i]->region().content();
        files::write(directory + "/" + saved_name(number, generation), content);
        manifest.put(number);
        manifest.put<std::uint64_t>(content.size());
        manifest.put(hash_bytes(content.data(), content.size(), 0));
        put_spans(manifest, impl_->shards[i]->unused_spans());
    }
    put_labels(manifest, impl_->labels);
    put_history(manifest, impl_->history);
    files::flush_directory(directory);
    files::write(directory + "/" + kManifest, manifest.finish());  // from here on the new save is the one that counts
    files::flush_directory(directory);
    remove_others(directory, generation);
}

std::unique_ptr<Store> Store::open(const std::string& saved, const std::string& directory, std::size_t reserve_bytes) {
    return open(saved, directory, StoreOptions{.reserve_bytes = reserve_bytes});
}

std::unique_ptr<Store> Store::open(const std::string& saved, const std::string& directory,
                                   const StoreOptions& options) {
    const std::string bytes = files::read(saved + "/" + kManifest);
    ByteReader manifest(bytes, kMagic, "store " + saved);
    const std::string generation = manifest.get_text();
    const auto all_shards = manifest.get<std::uint64_t>();
    const auto shards = manifest.get<std::uint64_t>();
    if (shards == 0 || shards > all_shards || all_shards > kMaxShards)
        throw StorageError("the saved store " + saved + " has no possible number of shards");
    if (!directory.empty()) files::make_directory(directory);
    auto impl = std::make_unique<Impl>();
    impl->directory = directory;
    impl->all_shards = all_shards;
    impl->publish_logs = options.publish_logs;
    for (std::uint32_t i = 0; i < shards; ++i) {
        const auto number = manifest.get<std::uint32_t>();
        Region::Saved file{saved + "/" + saved_name(number, generation), 0, 0, {}};
        file.bytes = manifest.get<std::uint64_t>();
        file.checksum = manifest.get<std::uint64_t>();
        file.unused = get_spans(manifest, file.bytes);
        Region region = Region::load(file, region_path(directory, number), options.reserve_bytes);
        if (region.header().shard != number || region.header().shards != all_shards)
            throw StorageError("the saved store " + saved + " has a region of another store");
        impl->add(std::move(region));
    }
    get_labels(manifest, impl->labels);
    get_history(manifest, shards, impl->history);
    manifest.finish();
    for (const auto& shard : impl->shards)
        if (shard->header().published != impl->history.latest())
            throw StorageError("the saved store " + saved + " has a region of another snapshot");
    if (options.publish_logs)
        for (std::size_t i = 0; i < shards; ++i)
            impl->history.for_each_held([&](const CommitRecord& record) {
                impl->shards[i]->restore_log(record.snapshot, record.source, record.logs[i]);
            });
    return std::unique_ptr<Store>(new Store(std::move(impl)));
}

}  // namespace penstock
