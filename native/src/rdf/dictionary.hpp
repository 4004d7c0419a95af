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
    /// Passes the terms of these IRIs and literals to `into` (Dictionary::adopt, or adopt_removable() for terms that
    /// the source possibly removes). DataError for an unknown id.
    virtual void fetch(std::span<const TermId> ids, Dictionary& into) = 0;
    /// out[i] = the id of terms[i] (IRIs, literals); kUnbound if the source does not contain it. Creates no ids.
    virtual void find(std::span<const TermView> terms, TermId* out) = 0;
};

/// The first slot of a partial dictionary's private entries. The slots of its source's entries are below.
inline constexpr std::uint64_t kPrivateSlots = std::uint64_t{1} << 31;

/// Whether an id is private: valid only in the partial dictionary that created it.
constexpr bool is_private(TermId id) {
    return (tag_of(id) == Tag::Iri || tag_of(id) == Tag::Literal) && payload_of(id) >= kPrivateSlots;
}

/// Thread-safe. Interning takes a lock per call (a batched call takes it once). view() and find() never wait for a
/// sweep for longer than one segment.
///
/// Lifetime of entries: an entry is *permanent* once stored data, a registration or an id given to the user needs it
/// (keep()). Any other entry is freed when sweep() finds that its last tick is older than everything live: live windows
/// (the caller's argument) and leases (answers and running evaluations). Freed slots are reused.
class Dictionary {
public:
    Dictionary();
    ~Dictionary();

    /// Id of an IRI or literal, which is created if new; records a use at the current tick. Blank nodes: fresh_blank().
    TermId intern(const TermView& term);
    /// The same for many terms under one lock, with prefetching; for bulk loads and events. Sweeps skip permanent
    /// entries. `out` has room for terms.size() ids.
    void intern(std::span<const TermView> terms, TermId* out, Lifetime lifetime = Lifetime::Transient);
    /// Id of the term; kUnbound if the dictionary does not contain it (inline terms always have an id). Records a use
    /// of the term found.
    TermId find(const TermView& term) const;
    /// The text of any id except Tag::Local. It points into `scratch` or into the dictionary; the latter is valid while
    /// a lease is held. Throws DataError for an id that does not exist.
    TermView view(TermId id, std::string& scratch) const;
    void prefetch_entry(TermId id) const;
    void prefetch_text(TermId id) const;

    /// Throws DataError unless every id is 0 or exists. For ids from outside.
    void check(const TermId* ids, std::size_t n) const;
    /// check() and touch() with one access per entry.
    bool admit(const TermId* ids, std::size_t n);

    // For bulk loads, which assign ids outside of the dictionary.
    std::uint64_t next_slot() const;  // this and all later slots are unused
    /// Live entries from slot `from` on: at most `at_most_terms`, and about `about_bytes` of texts.
    TermColumns columns(std::uint64_t from, std::size_t at_most_terms, std::size_t about_bytes) const;
    /// Adds terms with given ids: unused ones from next_slot() on, in ascending order. A term that already has that id
    /// is unchanged. DataError if it has another id, or if the id is not free; the terms before it are added then. New
    /// entries live until a sweep finds them unused. In a partial dictionary ids may be in any order, below
    /// kPrivateSlots. The new id supersedes a private entry of the same term: the private entry retains its id and text
    /// until a sweep, but find() returns the new id.
    void adopt(std::span<const TermId> ids, std::span<const TermView> terms);

    /// adopt() for terms that the source of a partial dictionary possibly removes later, and then adds again with other
    /// ids. view() finds them, but find() and intern() do not until adopt() confirms the id.
    void adopt_removable(std::span<const TermId> ids, std::span<const TermView> terms);
    /// out[i] = whether the source possibly removes the term of ids[i]. Requests missing terms from the source.
    void removable(const TermId* ids, std::size_t n, std::uint8_t* out);
    /// Drops entries of terms that the source has removed. No evaluation may use them.
    void drop(const TermId* ids, std::size_t n);

    // A partial dictionary (ADR 0037) is a cache of the source's terms, with private entries of its own. keep() only
    // records a use in it, because the source can supply every entry again.
    /// Makes an empty dictionary partial. To be called before any other use.
    void attach(std::shared_ptr<TermSource> source);
    TermSource* source() const;  // null unless partial
    bool partial() const;
    /// Ensures that the source's entries among the ids are present, and records a use of each: view() finds them until
    /// the end of a lease that is held meanwhile. Requests all missing ones from the source at once; returns their size
    /// in bytes.
    std::size_t require(const TermId* ids, std::size_t n) const;
    /// Replaces private ids by the source's ids of the same terms, where the source has them.
    void settle(TermId* ids, std::size_t n) const;

    TermId fresh_blank();  // thread-safe counter
    std::uint64_t blank_count() const;
    void reserve_blanks(std::uint64_t n);  // after a restart: numbers below n are in use

    void set_tick(Tick tick);
    Tick tick() const;
    // touch() and keep() are lock-free and ignore ids without entries. The caller ensures that the ids are alive, by a
    // lease or a live window, or by being the thread that sweeps.
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
    std::size_t live_bytes() const;  // the approximate part used by live entries; a sweep reduces it

    /// Writes the whole content to a file that replaces `path` only when it is complete and synced. Interning waits
    /// meanwhile. StorageError on failure.
    void save(const std::string& path) const;
    /// Loads into an empty dictionary. StorageError if the file cannot be read or is damaged; nothing is loaded then.
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
    void prefetch_entry(TermId id) const override { dictionary().prefetch_entry(id); }
    void prefetch_text(TermId id) const override { dictionary().prefetch_text(id); }
    void require(std::span<const TermId> ids) const override;

    // Over a partial dictionary a computed term may have an id that only the source knows. Before local ids are
    // compared with others by equality, settle() replaces them by such ids. Each term is requested once, and the result
    // is final for this object: ids that the source assigns later occur in no data visible to the evaluation.
    bool partial() const override { return dictionary().partial(); }
    void settle(TermId* ids, std::size_t n);
    /// Declares that the source does not contain the term of a private id, which represents the term from now on. For a
    /// constant that was searched for before the evaluation's snapshot was taken.
    void pin(TermId id);

    /// The id in `dictionary` (the one of this object) of a local term; other ids are returned unchanged. A local blank
    /// node becomes one fresh blank node, however often it is published.
    TermId publish(TermId id, Dictionary& dictionary);
    std::size_t size() const;
    std::size_t bytes() const;
    const Dictionary& dictionary() const;

private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace penstock
