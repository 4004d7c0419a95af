// Store::capture, Store::save and Store::open. A saved store is a chain of part files per shard (saved_region.hpp) and
// a manifest, which lists them with their checksums and contains the state outside of the regions (manifest.hpp).
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <filesystem>
#include <random>

#include "errors.hpp"
#include "store/files.hpp"
#include "store/manifest.hpp"
#include "store/saved_region.hpp"
#include "store/store_impl.hpp"

namespace penstock {

namespace {

constexpr std::string_view kMagic = "PENSTOCK-STORE-6";
constexpr const char* kManifest = "manifest";
constexpr std::uint64_t kMaxCopied = std::uint64_t{256} << 20;  // more changed bytes are written, not copied

ByteReader manifest_reader(const std::string& bytes, const std::string& directory) {
    return {bytes, kMagic, "store " + directory};
}

std::string random_name() {
    std::random_device device;
    char text[17];
    std::snprintf(text, sizeof text, "%08x%08x", device(), device());
    return text;
}

void put_region(ByteWriter& out, const SavedRegion& saved) {
    out.put(saved.bytes);
    out.put(saved.root());
    out.put<std::uint64_t>(saved.parts.size());
    for (const SavedPart& part : saved.parts) {
        out.put_text(part.name);
        out.put(part.bytes);
        out.put(part.checksum);
    }
}

SavedRegion get_region(ByteReader& in, std::uint64_t& root) {
    SavedRegion saved;
    saved.bytes = in.get<std::uint64_t>();
    root = in.get<std::uint64_t>();
    saved.parts.resize(in.get_count(2 * sizeof(std::uint64_t)));
    for (SavedPart& part : saved.parts) {
        part.name = in.get_text();
        part.bytes = in.get<std::uint64_t>();
        part.checksum = in.get<std::uint64_t>();
    }
    return saved;
}

// Links a saved region's files into a new directory; copies them if the file system does not support links.
void bring(const SavedRegion& saved, const std::string& from, const std::string& to) {
    if (from == to) return;
    for (const SavedPart& part : saved.parts) {
        std::error_code error;
        std::filesystem::create_hard_link(from + "/" + part.name, to + "/" + part.name, error);
        if (error) std::filesystem::copy_file(from + "/" + part.name, to + "/" + part.name, error);
        if (error) throw StorageError("cannot link " + from + "/" + part.name + " into " + to + ": " + error.message());
    }
}

// Removes files of earlier saves that the new manifest does not list, and of saves that did not complete.
void remove_others(const std::string& directory, const std::vector<SavedRegion>& named) {
    const auto counts = [&](const std::string& name) {
        return std::any_of(named.begin(), named.end(), [&](const SavedRegion& region) {
            return std::any_of(region.parts.begin(), region.parts.end(),
                               [&](const SavedPart& part) { return part.name == name; });
        });
    };
    std::error_code ignored;  // a failure leaves a superfluous file only
    for (const auto& file : std::filesystem::directory_iterator(directory, ignored)) {
        const std::string name = file.path().filename();
        if (name.starts_with("shard-") && !counts(name)) std::filesystem::remove(file.path(), ignored);
    }
}

}  // namespace

// One thread captures, another may write: `writing` passes the other members between them.
struct SavedStore {
    std::string generation;            // of the manifest that describes this state
    std::vector<SavedRegion> regions;  // as Impl::shards
    // True while a capture exists. Stored with release when the capture ends, after its write() has changed the members
    // above. Acquired by the thread that creates the next capture and reads them.
    std::atomic<bool> writing = false;
};

std::shared_ptr<SavedStore> new_saved_store() { return std::make_shared<SavedStore>(); }

struct StoreCapture::Impl {
    struct OfShard {
        std::uint32_t number;
        Changes changes;
        SavedRegion since;
        std::vector<Span> unused;
    };

    std::shared_ptr<SavedStore> known;
    std::string directory, previous;
    std::string generation = random_name();
    std::uint64_t all_shards = 0;
    std::vector<OfShard> shards;
    std::vector<SavedRegion> written;  // of the first shards, if they are not copied
    ByteWriter outside{""};            // labels, history
    std::uint64_t changed = 0;

    ~Impl() { known->writing.store(false, std::memory_order_release); }
    std::string file_name(const OfShard& shard) const {
        return "shard-" + std::to_string(shard.number) + "." + generation;
    }
    void write_part(const OfShard& shard) {
        bring(shard.since, previous, directory);
        SavedRegion saved = shard.changes.write(shard.since, directory, file_name(shard) + ".region");
        if (saved.long_chain()) saved.parts = {merge_parts(saved, directory, file_name(shard) + "-merged.region")};
        written.push_back(std::move(saved));
    }
    std::string manifest() {
        ByteWriter out(kMagic);
        out.put_text(generation);
        out.put(all_shards);
        out.put<std::uint64_t>(shards.size());
        for (std::size_t i = 0; i < shards.size(); ++i) {
            out.put(shards[i].number);
            put_region(out, written[i]);
            put_spans(out, shards[i].unused);
        }
        out.put_text(outside.finish());
        return out.finish();
    }
};

StoreCapture::StoreCapture(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
StoreCapture::~StoreCapture() = default;

std::uint64_t StoreCapture::changed_bytes() const { return impl_ == nullptr ? 0 : impl_->changed; }

void StoreCapture::write() {
    if (impl_ == nullptr) throw DataError("a capture is written once");
    const std::unique_ptr<Impl> impl = std::move(impl_);
    for (std::size_t i = impl->written.size(); i < impl->shards.size(); ++i) impl->write_part(impl->shards[i]);
    const std::string& directory = impl->directory;
    files::flush_directory(directory);
    files::write(directory + "/" + kManifest, impl->manifest());  // from here on the new save is the valid one
    files::flush_directory(directory);
    remove_others(directory, impl->written);
    impl->known->generation = impl->generation;
    impl->known->regions = std::move(impl->written);
}

namespace {

// The generation of the store saved there; empty if there is none or it cannot be read.
std::string generation_of(const std::string& directory) {
    try {
        const std::string bytes = files::read(directory + "/" + kManifest);
        return manifest_reader(bytes, directory).get_text();
    } catch (const StorageError&) {
        return "";
    }
}

}  // namespace

std::unique_ptr<StoreCapture> Store::capture(const std::string& directory, const std::string& previous) const {
    SavedStore& known = *impl_->saved;
    if (known.writing.exchange(true, std::memory_order_acquire))
        throw DataError("what was captured before is not written yet");
    auto capture = std::make_unique<StoreCapture::Impl>();
    capture->known = impl_->saved;
    files::make_directory(directory);
    const bool goes_on = !known.generation.empty() && !previous.empty() && generation_of(previous) == known.generation;
    capture->directory = directory;
    capture->previous = previous;
    capture->all_shards = impl_->all_shards;
    for (std::size_t i = 0; i < impl_->shards.size(); ++i) {
        const Shard& shard = *impl_->shards[i];
        SavedRegion since = goes_on ? known.regions[i] : SavedRegion{};
        std::vector<Span> unused = shard.unused_spans();
        Changes changes(since, shard.region().content(), unused);
        capture->changed += changes.bytes();
        capture->shards.push_back({shard.header().shard, std::move(changes), std::move(since), std::move(unused)});
    }
    if (capture->changed <= kMaxCopied)
        for (auto& shard : capture->shards) shard.changes.copy();
    else
        for (const auto& shard : capture->shards) capture->write_part(shard);
    put_labels(capture->outside, impl_->labels);
    put_history(capture->outside, impl_->history);
    for (const auto& shard : impl_->shards) put_garbage(capture->outside, shard->garbage());
    return std::unique_ptr<StoreCapture>(new StoreCapture(std::move(capture)));
}

void Store::save(const std::string& directory) const { capture(directory, "")->write(); }

std::unique_ptr<Store> Store::open(const std::string& saved, const std::string& directory, std::size_t reserve_bytes) {
    return open(saved, directory, StoreOptions{.reserve_bytes = reserve_bytes});
}

std::unique_ptr<Store> Store::open(const std::string& saved, const std::string& directory,
                                   const StoreOptions& options) {
    const std::string bytes = files::read(saved + "/" + kManifest);
    ByteReader manifest = manifest_reader(bytes, saved);
    auto impl = std::make_unique<Impl>();
    impl->saved->generation = manifest.get_text();
    const auto all_shards = manifest.get<std::uint64_t>();
    const auto shards = manifest.get<std::uint64_t>();
    if (shards == 0 || shards > all_shards || all_shards > kMaxShards)
        throw StorageError("the saved store " + saved + " has no possible number of shards");
    if (!directory.empty()) files::make_directory(directory);
    impl->directory = directory;
    impl->all_shards = all_shards;
    impl->publish_logs = options.publish_logs;
    for (std::uint32_t i = 0; i < shards; ++i) {
        const auto number = manifest.get<std::uint32_t>();
        std::uint64_t root = 0;
        SavedRegion region = get_region(manifest, root);
        const std::vector<Span> unused = get_spans(manifest, region.bytes);
        impl->add(Region::load(region, root, saved, unused, region_path(directory, number), options.reserve_bytes));
        const layout::Header& header = impl->shards.back()->header();
        if (header.shard != number || header.shards != all_shards)
            throw StorageError("the saved store " + saved + " has a region of another store");
        impl->saved->regions.push_back(std::move(region));
    }
    const std::string rest = manifest.get_text();
    manifest.finish();
    ByteReader outside(rest, "", "store " + saved);
    get_labels(outside, impl->labels);
    get_history(outside, shards, impl->history);
    impl->changes.add_unknown(impl->history.latest());  // their edges are not recorded
    for (const auto& shard : impl->shards) shard->restore_garbage(get_garbage(outside, shard->header().used));
    outside.finish();
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
