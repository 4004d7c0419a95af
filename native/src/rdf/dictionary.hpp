// Terms <-> ids. See term.hpp for the id layout and ADR 2 for the rules.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rdf/inline_literal.hpp"
#include "rdf/term.hpp"
#include "rdf/term_texts.hpp"

namespace penstock {

class Dictionary;
struct TermColumns;  // rdf/term_columns.hpp

/// A tick of the engine's clock, which counts closed batches. Each entry stores the last tick at which it was used.
using Tick = std::uint64_t;

/// The intended lifetime of a new entry: until a sweep finds it unused, or permanent.
enum class Lifetime : std::uint8_t { Transient, Permanent };

/// The source of terms that a partial dictionary does not contain: in a cluster, the dictionary service. Called without
/// any lock of the dictionary. Its exceptions propagate to the caller of the dictionary.
class TermSource {
public:
    virtual ~TermSource() = default;
    /// Adds the terms of these ids of IRIs and literals to `into`. Calls Dictionary::adopt(), or adopt_removable() for
    /// terms that the source possibly removes. DataError for an unknown id.
    virtual void fetch(std::span<const TermId> ids, Dictionary& into) = 0;
    /// Sets out[i] to the id of terms[i] (an IRI or literal), or to kUnbound if the source does not contain the term.
    /// Creates no ids.
    virtual void find(std::span<const TermView> terms, TermId* out) = 0;
};

/// The first slot of a partial dictionary's private entries. Entries of the source have lower slots.
inline constexpr std::uint64_t kPrivateSlots = std::uint64_t{1} << 31;

/// Whether an id is private. A private id is valid only in the partial dictionary that created it.
constexpr bool is_private(TermId id) {
    return (tag_of(id) == Tag::Iri || tag_of(id) == Tag::Literal) && payload_of(id) >= kPrivateSlots;
}

/// Thread-safe. Each call that interns takes a lock once, also for many terms. view() and find() wait for a sweep at
/// most while it processes one segment.
///
/// Lifetime of entries: an entry is *permanent* as soon as stored data, a registration, or an id that the user has
/// received needs it (keep()). sweep() frees any other entry whose last tick is older than all live windows (the
/// caller's argument) and all leases (of answers and running evaluations). Freed slots are reused.
class Dictionary {
public:
    Dictionary();
    ~Dictionary();

    /// The id of an IRI or literal. Creates an entry for a new term. Marks the entry as used at the current tick. For
    /// blank nodes, see fresh_blank().
    TermId intern(const TermView& term);
    /// The same for many terms, with one lock and with prefetching, for bulk loads and events. Sweeps skip permanent
    /// entries. `out` has room for terms.size() ids.
    void intern(std::span<const TermView> terms, TermId* out, Lifetime lifetime = Lifetime::Transient);
    /// The id of the term; kUnbound if the dictionary does not contain the term. (Inline terms always have an id.)
    /// Marks the entry as used at the current tick.
    TermId find(const TermView& term) const;
    /// The text of any id except Tag::Local. The text points into `scratch` or into the dictionary. A text in the
    /// dictionary is valid while a lease is held. Throws DataError for an id that does not exist.
    TermView view(TermId id, std::string& scratch) const;
    /// As in TermTexts.
    void records(std::span<const TermId> ids, const TermRecord** out) const;

    /// Throws DataError unless each id is 0 or exists. For ids from outside, for example from users.
    void check(const TermId* ids, std::size_t n) const;
    /// check() and touch() with one access per entry.
    bool admit(const TermId* ids, std::size_t n);

    // For bulk loads, which assign ids outside of the dictionary.
    std::uint64_t next_slot() const;  // this and all later slots are unused
    /// Live entries from slot `from` on: at most `at_most_terms`, and about `about_bytes` of texts.
    TermColumns columns(std::uint64_t from, std::size_t at_most_terms, std::size_t about_bytes) const;
    /// Adds terms with given ids. The ids must have unused slots from next_slot() on, in ascending order. A term that
    /// already has the given id is unchanged. DataError if a term has another id, or if an id is not free. The terms
    /// before this term are then added. New entries live until a sweep finds them unused. In a partial dictionary, the
    /// slots can be in any order, below kPrivateSlots. The new id supersedes a private entry of the same term: find()
    /// returns the new id, but the private entry retains its id and text until a sweep.
    void adopt(std::span<const TermId> ids, std::span<const TermView> terms);

    /// Like adopt(), for terms that the source of a partial dictionary possibly removes later. The source can add such
    /// a term again with another id. view() finds these terms. find() and intern() find them only after adopt() has
    /// confirmed the id.
    void adopt_removable(std::span<const TermId> ids, std::span<const TermView> terms);
    /// Sets out[i] to 1 if the source possibly removes the term of ids[i], otherwise to 0. Requests missing terms from
    /// the source.
    void removable(const TermId* ids, std::size_t n, std::uint8_t* out);
    /// Drops entries of terms that the source has removed. No evaluation may use them.
    void drop(const TermId* ids, std::size_t n);

    /// Makes an empty dictionary partial. Must be called before any other use. A partial dictionary (ADR 0037) is a
    /// cache of the source's terms, and also has private entries. In a partial dictionary, keep() only marks entries as
    /// used, because the source can supply each entry again.
    void attach(std::shared_ptr<TermSource> source);
    TermSource* source() const;  // null unless partial
    bool partial() const;
    /// Ensures that the entries of all ids of the source are present, and marks each as used. view() then finds these
    /// entries until the end of a lease that was held during this call. Requests all missing entries from the source at
    /// once. Returns the size of the requested entries in bytes.
    std::size_t require(const TermId* ids, std::size_t n) const;
    /// Replaces each private id by the source's id of the same term, if the source has the term.
    void settle(TermId* ids, std::size_t n) const;

    TermId fresh_blank();  // thread-safe counter
    std::uint64_t blank_count() const;
    void reserve_blanks(std::uint64_t n);  // after a restart: numbers below n are in use

    void set_tick(Tick tick);
    Tick tick() const;
    // touch() and keep() are lock-free and ignore ids without entries. The caller must ensure that no sweep frees the
    // entries meanwhile: by a lease, by a live window, or because the caller is the thread that sweeps.
    bool touch(const TermId* ids, std::size_t n);  // last use = now; true if all are permanent already
    void keep(const TermId* ids, std::size_t n);   // makes entries permanent
    /// Frees entries that are not permanent and were last used before `oldest_live` and before the oldest lease.
    /// Amortised O(1) per entry. Returns the number of entries freed.
    std::size_t sweep(Tick oldest_live);

    /// While a lease exists, entries used at or after the tick of its creation are not freed.
    class Lease {
    public:
        explicit Lease(Dictionary& dictionary);
        ~Lease();
        Lease(const Lease&) = delete;
        Lease& operator=(const Lease&) = delete;

    private:
        Dictionary& dictionary_;
        Tick tick_;
    };

    std::size_t size() const;        // live entries
    std::size_t bytes() const;       // memory allocated: arenas, hash, entries
    std::size_t live_bytes() const;  // approximate bytes of live entries; a sweep reduces them

    /// Writes the whole content to a new file, which replaces `path` only when the new file is complete and synced.
    /// Interning waits meanwhile. StorageError on failure.
    void save(const std::string& path) const;
    /// Loads a file into an empty dictionary. StorageError if the file cannot be read or is damaged. Nothing is loaded
    /// in this case.
    void load(const std::string& path);

private:
    friend class LocalTerms;
    TermId known_blank(const TermView& term) const;
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

/// Terms that one evaluation computes and that are neither inline nor in the dictionary. intern() first searches the
/// dictionary (without creating entries), so equal terms always get equal ids. Not thread-safe. Lives as long as the
/// answer that uses it.
class LocalTerms final : public TermTexts {
public:
    explicit LocalTerms(const Dictionary& dictionary);
    ~LocalTerms() override;
    TermId intern(const TermView& term);
    TermId fresh_blank();  // a blank node of this evaluation only (kind Blank, Tag::Local)
    /// The text of any id, local or not.
    TermView view(TermId id, std::string& scratch) const override;
    void records(std::span<const TermId> ids, const TermRecord** out) const override;
    void require(std::span<const TermId> ids) const override;

    // With a partial dictionary, a computed term can have an id that only the source knows. settle() replaces local ids
    // by such ids. It must be called before local ids are compared with other ids. Each term is requested once, and the
    // result is final for this object, because an id that the source assigns later is in no data that the evaluation
    // sees.
    bool partial() const override { return dictionary().partial(); }
    void settle(TermId* ids, std::size_t n);
    /// Declares that the source does not contain the term of a private id. From now on, the private id represents the
    /// term. For a constant for which the source was searched before the evaluation's snapshot was taken.
    void pin(TermId id);

    /// Returns the id of a local term in `dictionary`, which must be the dictionary of this object. Other ids are
    /// returned unchanged. All calls for the same local blank node return the same fresh blank node.
    TermId publish(TermId id, Dictionary& dictionary);
    /// A column after publish(): `ids` itself if no id is local, and otherwise `replaced`, which is set.
    std::span<const TermId> published(std::span<const TermId> ids, Dictionary& dictionary,
                                      std::vector<TermId>& replaced);
    std::size_t size() const;
    std::size_t bytes() const;
    const Dictionary& dictionary() const;

private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace penstock
