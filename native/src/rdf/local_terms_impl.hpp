// The members of LocalTerms, shared by local_terms.cpp and partial_dictionary.cpp.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "errors.hpp"
#include "rdf/dictionary_impl.hpp"

namespace penstock {

struct LocalTerms::Impl {
    static constexpr std::size_t kFirstArenaBytes = 1024;

    explicit Impl(const Dictionary& d) : dictionary(d) {}

    const Dictionary& dictionary;
    std::vector<const TermRecord*> records;  // by index; nullptr = a blank node
    std::vector<TermId> settled;             // by index, of a partial dictionary: kUnbound = not requested yet
    HashCells cells;                         // slot = index + 1
    RecordHeap heap{kFirstArenaBytes};
    std::string blank_prefix;  // "e<number of the evaluation>n", set with the first blank node
    std::map<TermId, TermId> published_blanks;

    const TermRecord* record(TermId id) const {
        if (payload_of(id) >= records.size())
            throw DataError("local term id " + std::to_string(id) + " names nothing here");
        return records[payload_of(id)];
    }
    TermId add(const TermKey& key) {
        records.push_back(TermRecord::write(heap.allocate(key.record_bytes()), key));
        cells.insert(key.hash, static_cast<std::uint32_t>(records.size()));
        return make_id(Tag::Local, records.size() - 1);
    }
    /// The id that represents a local id: itself, or the source's id that settle() found.
    TermId settled_id(TermId id) const {
        const std::uint64_t index = payload_of(id);
        return index < settled.size() && settled[index] != kUnbound ? settled[index] : id;
    }
};

}  // namespace penstock
