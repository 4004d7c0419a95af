// The events that a program makes of a batch of messages: their triples, before their terms have ids.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "mapping/program.hpp"
#include "mapping/text_arena.hpp"
#include "rdf/dictionary.hpp"
#include "rdf/ntriples.hpp"

namespace penstock {
class TextBuffer;
}

namespace penstock::mapping {

/// Columns of ids. The triples of event i follow those of event i - 1.
struct MappedColumns {
    std::vector<TermId> subjects, predicates, objects;
};

/// The events of a batch. Shares ownership of the program, because the triples contain constants of the program.
class MappedBatch {
public:
    using TermIndex = std::uint32_t;
    static constexpr TermIndex kNone = 0xFFFFFFFF;

    explicit MappedBatch(std::shared_ptr<const Program> program)
        : constants_(program->constants.size(), kNone), program_(std::move(program)) {}
    MappedBatch(const MappedBatch&) = delete;
    MappedBatch& operator=(const MappedBatch&) = delete;

    // ---- while it is filled
    TextArena& texts() { return texts_; }
    /// The label of a fresh blank node begins with this character, and other labels do not.
    static constexpr char kFresh = 'f';

    TermIndex add(const TermView& term) {
        terms_.push_back(term);
        blanks_ = blanks_ || term.kind == Kind::Blank;
        return static_cast<TermIndex>(terms_.size() - 1);
    }
    /// The index of a constant of the program.
    TermIndex constant(std::uint32_t number) {
        TermIndex& index = constants_[number];
        if (index == kNone) index = add(program_->constants[number]);
        return index;
    }
    void add_triple(TermIndex subject, TermIndex predicate, TermIndex object) {
        rows_.push_back({subject, predicate, object});
    }
    const TermView& term(TermIndex index) const { return terms_[index]; }
    std::size_t rows() const { return rows_.size(); }
    /// Ends an event. It consists of the triples since the end of the previous event.
    void end_event(std::int64_t time, std::uint32_t message) {
        const std::size_t before = ends_.empty() ? 0 : ends_.back();
        times.push_back(time);
        messages.push_back(message);
        counts.push_back(static_cast<std::int64_t>(rows_.size() - before));
        ends_.push_back(rows_.size());
    }
    /// A state to which cut() returns.
    struct Mark {
        std::size_t terms, rows, events;
    };
    Mark mark() const { return {terms_.size(), rows_.size(), ends_.size()}; }
    void cut(const Mark& mark);

    // ---- when it is full
    std::size_t events() const { return ends_.size(); }
    /// Gives ids to all terms. If `scope` is null, the scope of a blank node's label is its event. Otherwise, it is
    /// `scope`. The scope of a fresh node is always its event.
    MappedColumns intern(Dictionary& dictionary, BlankScope* scope) const;
    /// Appends the triples of an event as N-Triples.
    void write(TextBuffer& out, std::size_t event) const;

    // By event: its time, the position of its message, and its number of triples.
    std::vector<std::int64_t> times;
    std::vector<std::uint32_t> messages;
    std::vector<std::int64_t> counts;
    std::vector<std::uint32_t> declined;  // positions of messages, in order

private:
    std::vector<TermView> terms_;
    std::vector<TermIndex> constants_;  // by number
    std::vector<std::array<TermIndex, 3>> rows_;
    std::vector<std::size_t> ends_;  // by event: the row behind its last one
    TextArena texts_;
    bool blanks_ = false;
    std::shared_ptr<const Program> program_;
};

}  // namespace penstock::mapping
