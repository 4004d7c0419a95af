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

namespace penstock {

class Dictionary;
struct TermColumns;  // rdf/term_columns.hpp

/// A tick of the engine's clock: it counts closed batches. Entries remember the last tick that used them.
using Tick = std::uint64_t;

/// How long a new entry is meant to live: until a sweep finds it unused, or for ever.
enum class Lifetime : std::uint8_t { Transient, Kept };

/// Where the terms are that a partial dictionary does not hold: in a cluster, the dictionary service. Called without
/// any lock of the dictionary. What it throws comes out of the call that needed it.
class TermSource {
public:
    virtual ~TermSource() = default;
    /// Gives the terms of these IRIs and literals to `into` (Dictionary::adopt). DataError for an id that names
    /// nothing.
    virtual void fetch(std::span<const TermId> ids, Dictionary& into) = 0;
    /// out[i] = the id of terms[i] (IRIs, literals), kUnbound where the source has none. Makes nothing.
    virtual void find(std::span<const TermView> terms, TermId* out) = 0;
};

/// A partial dictionary's own entries, which its source knows nothing of, have slots from here on; those of the source
/// lie below.
inline constexpr std::uint64_t kPrivateSlots = std::uint64_t{1} << 31;

/// Whether an id means something only to the partial dictionary that made it.
constexpr bool is_private(TermId id) {
    return (tag_of(id) == Tag::Iri || tag_of(id) == Tag::Literal) && payload_of(id) >= kPrivateSlots;
}

/// Thread-safe: interning takes a lock per call (batched calls take it once); view() and find() never block on sweeps
/// for longer than one segment.
///
/// Lifetime of entries: an entry is *kept* for ever once something stored, registered or encoded by the user needs it
/// (keep()); otherwise it goes when sweep() finds that its last tick is older than everything live: live windows (the
/// caller's argument) and leases (answers and running evaluations). Slots are reused after that.
class Dictionary {
public:
    Dictionary();
    ~Dictionary();

    /// Id of the term, made where it is new; touches it at the current tick. IRIs, literals; for blank nodes see
    /// fresh_blank.
    TermId intern(const TermView& term);
    /// The same for many terms under one lock, with prefetching: the way in for bulk loads and events. Kept entries are
    /// never looked at by a sweep. `out` has room for terms.size() ids.
    void intern(std::span<const TermView> terms, TermId* out, Lifetime lifetime = Lifetime::Transient);
    /// Id of the term, or kUnbound where the dictionary does not know it (inline terms are always known). A term that
    /// is found counts as used now.
    TermId find(const TermView& term) const;
    /// The text of any id but Tag::Local. `scratch` may be used to hold it; otherwise it points into the dictionary and
    /// stays valid while a lease is held. Throws DataError for an id that names nothing.
    TermView view(TermId id, std::string& scratch) const;

    /// Throws DataError unless every id is 0 or names something: for ids from outside.
    void check(const TermId* ids, std::size_t n) const;
    /// check() and touch() with one look at each entry.
    bool admit(const TermId* ids, std::size_t n);

    // For bulk loads, which number terms elsewhere.
    std::uint64_t next_slot() const;  // slots from here on were never used
    /// Live entries from a slot on: at most so many, and no more once their texts exceed `about_bytes`.
    TermColumns columns(std::uint64_t from, std::size_t at_most_terms, std::size_t about_bytes) const;
    /// Gives terms the ids that they were numbered with: unused ones from next_slot() on, in ascending order. A term
    /// that has its id already stays as it is; DataError where it has another, or the id is not free (terms before it
    /// are adopted then). New entries live until a sweep finds them unused.
    /// Into a partial dictionary ids come in any order, below kPrivateSlots; a private entry of the same term is
    /// superseded: it keeps its id and text until a sweep, but the term is found under the one that was given.
    void adopt(std::span<const TermId> ids, std::span<const TermView> terms);

    // A partial dictionary (ADR 0037): a cache of the source's terms, beside private entries. Entries that were kept
    // for ever count as used only: every one of them can be had again.
    /// Makes an empty dictionary a partial one. Before any other use.
    void attach(std::shared_ptr<TermSource> source);
    bool partial() const;
    /// Sees to it that the source's entries among the ids are here and count as used now: until a lease that is held
    /// meanwhile ends, view() knows them. Asks the source once for all that are missing; returns their size in bytes.
    std::size_t require(const TermId* ids, std::size_t n) const;
    /// Puts the source's ids in the place of private ones whose terms it knows.
    void settle(TermId* ids, std::size_t n) const;

    TermId fresh_blank();  // thread-safe counter
    std::uint64_t blank_count() const;
    void reserve_blanks(std::uint64_t n);  // after restart: numbers below n are taken

    void set_tick(Tick tick);
    Tick tick() const;
    // Both are lock-free; ids that are no entries are passed over. The caller sees to it that the ids are alive: a
    // lease, a live window, or the thread that sweeps.
    bool touch(const TermId* ids, std::size_t n);  // last use = now; true where all are kept for ever already
    void keep(const TermId* ids, std::size_t n);   // for ever
    /// Frees entries neither kept, nor used at or after `oldest_live`, nor younger than the oldest lease. Amortised
    /// O(1) per entry. Returns how many went.
    std::size_t sweep(Tick oldest_live);

    /// Entries used at or after the tick at which this was made stay while it lives.
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
    std::size_t bytes() const;       // memory held: arenas, hash, entries
    std::size_t live_bytes() const;  // about what live entries take of it: what a sweep can make less

    /// Writes the whole content to a file that takes the place of `path` only when it is complete and on disk.
    /// Interning waits meanwhile. StorageError on failure.
    void save(const std::string& path) const;
    /// Into an empty dictionary. StorageError where the file cannot be read or is damaged (then nothing was loaded).
    void load(const std::string& path);

private:
    friend class LocalTerms;
    TermId known_blank(const TermView& term) const;
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

/// Terms that one evaluation computed and that are neither inline nor in the dictionary. intern() looks in the
/// dictionary first (find only), so equal terms always get equal ids. Not thread-safe; lives as long as the answer that
/// uses it.
class LocalTerms {
public:
    explicit LocalTerms(const Dictionary& dictionary);
    ~LocalTerms();
    TermId intern(const TermView& term);
    TermId fresh_blank();  // a blank node of this evaluation only (kind Blank, Tag::Local)
    /// The text of any id, local or not.
    TermView view(TermId id, std::string& scratch) const;

    // Over a partial dictionary a term that was computed may have an id that only its source knows: before local ids
    // meet others by equality, settle() puts that in their place. Each term is asked for once, and what the answer was
    // then holds as long as this object does: what the source learns later is in no data that the evaluation sees.
    bool partial() const { return dictionary().partial(); }
    void settle(TermId* ids, std::size_t n);
    /// Takes it that the source does not know the term of a private id, which stands for it from now on: a constant
    /// that was looked for before the evaluation's snapshot was taken.
    void pin(TermId id);

    /// The id in `dictionary` (this one's own) of a local term; other ids are returned as they are. A local blank node
    /// becomes one fresh blank node, however often it is published.
    TermId publish(TermId id, Dictionary& dictionary);
    std::size_t size() const;
    std::size_t bytes() const;
    const Dictionary& dictionary() const;

private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace penstock
