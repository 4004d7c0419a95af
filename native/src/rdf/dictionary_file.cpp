// Saving and loading a dictionary. The file: a header, then for each live entry its slot, its use word and its record,
// in ascending order of slots. Numbers are in the machine's byte order, little-endian; the magic word reveals another
// one.
#include <string>

#include "errors.hpp"
#include "rdf/checked_file.hpp"
#include "rdf/dictionary_impl.hpp"

namespace penstock {
namespace {

constexpr std::uint64_t kMagic = 0x31304d5245544e50ULL;  // "PNTERM01"

struct FileHeader {
    std::uint64_t magic = kMagic;
    std::uint64_t entries = 0;
    std::uint64_t next_slot = 1;
    std::uint64_t blanks = 0;
    std::uint64_t tick = 0;
    std::uint64_t evaluations = 0;
};

struct EntryHeader {
    std::uint64_t slot = 0;
    std::uint64_t use = 0;
    std::uint32_t lexical_bytes = 0;
    std::uint32_t extra_bytes = 0;
    std::uint64_t type = 0;
};

[[noreturn]] void malformed(const std::string& path) { throw StorageError(path + ": is not a saved dictionary"); }

TermView term_of(const EntryHeader& entry, std::string_view text) {
    const std::string_view lexical = text.substr(0, entry.lexical_bytes);
    const std::string_view extra = text.substr(entry.lexical_bytes);
    switch (entry.type) {
        case RecordType::kIri:
            return {Kind::Iri, lexical, {}, {}};
        case RecordType::kLang:
            return {Kind::Literal, lexical, kRdfLangString, extra};
        case RecordType::kOther:
            return {Kind::Literal, lexical, extra, {}};
        default:
            return {Kind::Literal, lexical, known_datatype(static_cast<std::uint8_t>(entry.type)), {}};
    }
}

}  // namespace

void Dictionary::save(const std::string& path) const {
    if (partial()) throw StorageError(path + ": a partial dictionary is a cache, and not saved");
    CheckedWriter file(path);
    const std::scoped_lock lock(impl_->mutex);
    file.put(FileHeader{.entries = size(),
                        .next_slot = impl_->next_slot,
                        .blanks = blank_count(),
                        .tick = tick(),
                        .evaluations = impl_->evaluations.load(std::memory_order_relaxed)});
    for (std::uint64_t slot = 1; slot < impl_->next_slot; ++slot) {
        const Entry& entry = impl_->entries[static_cast<std::uint32_t>(slot)];
        const TermRecord* record = entry.record.load(std::memory_order_relaxed);
        if (record == nullptr) continue;
        const std::string_view lexical = record->lexical();
        const std::string_view extra = record->extra();
        file.put(EntryHeader{slot, entry.use.load(std::memory_order_relaxed) & ~Entry::kLiteral,
                             static_cast<std::uint32_t>(lexical.size()), static_cast<std::uint32_t>(extra.size()),
                             record->type()});
        file.write(lexical.data(), lexical.size());
        file.write(extra.data(), extra.size());
    }
    file.commit();
}

void Dictionary::load(const std::string& path) {
    CheckedReader file(path);
    if (file.left() < sizeof(FileHeader)) malformed(path);
    const auto header = file.get<FileHeader>();
    if (header.magic != kMagic || header.next_slot == 0) malformed(path);
    auto loaded = std::make_unique<Impl>();
    std::string text;
    std::uint64_t expected = 1;  // slots between entries are free
    const auto free_until = [&](std::uint64_t slot) {
        for (; expected < slot; ++expected) {
            loaded->entries.reach(expected);
            loaded->free_slots.push_back(static_cast<std::uint32_t>(expected));
        }
    };
    for (std::uint64_t i = 0; i < header.entries; ++i) {
        const auto entry = file.get<EntryHeader>();
        const std::uint64_t bytes = std::uint64_t{entry.lexical_bytes} + entry.extra_bytes;
        if (entry.slot < expected || entry.slot >= header.next_slot || bytes > file.left()) malformed(path);
        text.resize(bytes);
        file.read(text.data(), bytes);
        free_until(entry.slot);
        const auto slot = static_cast<std::uint32_t>(expected++);
        loaded->entries.reach(slot);
        loaded->fill(slot, TermKey(term_of(entry, text), loaded->seed), entry.use);
        if ((entry.use & Entry::kPermanent) == 0) loaded->ages[Entry::tick_of(entry.use)].push_back(slot);
    }
    free_until(header.next_slot);
    loaded->next_slot = header.next_slot;
    loaded->entries.reach(header.next_slot - 1);
    loaded->blanks = header.blanks;
    loaded->now = header.tick;
    loaded->evaluations = header.evaluations;
    if (size() != 0 || blank_count() != 0 || partial())
        throw StorageError(path + ": can only be loaded into an empty dictionary");
    impl_ = std::move(loaded);
}

}  // namespace penstock
