// What the last run looked up and what it answered: where all of it is found again, the answer stands.
//
// A small standing query is evaluated every step of its window, and most steps change nothing that it reads (DESIGN
// §6.5; "operator-aware" evaluation of CQELS, JWS'16, keeps operators' results likewise). What it costs then is not
// work but cold cache lines, of operators' code and data above all; asking the sources again needs none of these.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "exec/table.hpp"
#include "source.hpp"

namespace penstock::exec {

struct EdgeSet;

/// The look-ups of a run in their order, as far as they are few. A plan whose rows follow from its seed and from
/// look-ups alone gives the same rows wherever it would make the same look-ups with the same results.
class Remembered {
public:
    enum class Kind : std::uint8_t { Expand, Contains, Labels };

    /// Whether the seed is that of the last run; notes it where it is not.
    bool same_seed(const Table& seed);
    /// A run with the seed of the one before is about to look up anew: whether its look-ups should be noted.
    bool begin();
    /// The neighbours of keys as the last run noted them, those that have changed since looked up; false where that is
    /// not known. To be noted as if looked up.
    bool recall(const EdgeSet& edges, Dir dir, std::span<const TermId> keys, Matches& found);
    void expanded(const EdgeSet& edges, Dir dir, std::span<const TermId> keys, const Matches& found);
    void tested(const EdgeSet& edges, std::span<const TermId> subjects, std::span<const TermId> objects,
                std::span<const std::uint8_t> found);
    void probed(std::uint32_t source, Dir dir, std::span<const TermId> keys, std::span<const std::uint32_t> rows,
                std::span<const Label> labels);
    /// The run read something else, or too much.
    void give_up() { noting_ = false; }
    /// The run is over.
    void end(const Answer& answer, std::uint64_t labels);

    /// Whether every look-up gives what it gave, over a label table of that identity.
    bool holds(std::span<const Source* const> sources, std::uint64_t labels);
    const Answer& answer() const { return answer_; }

private:
    static constexpr std::size_t kSteps = 8, kIds = 1024;
    static constexpr std::size_t kCells = 2048;  // of an answer
    static constexpr std::uint32_t kHabit = 6;   // look-ups that change so often in a row do so nearly always
    static constexpr std::uint32_t kLongestPauseBits = 6;

    struct Step {
        std::uint64_t version;  // of the source that gave this, or gave it again
        Label label;
        std::uint16_t source;
        std::uint16_t at, keys, found;  // where in the notes, and how many of each
        Kind kind;
        Dir dir;
    };
    /// The look-ups of one run.
    struct Notes {
        std::size_t count = 0;
        std::array<Step, kSteps> steps;
        std::vector<TermId> ids;          // of each step the keys, then what was found
        std::vector<std::uint16_t> rows;  // beside what was found: the index of its key

        std::span<const TermId> keys(const Step& step) const { return std::span(ids).subspan(step.at, step.keys); }
        std::span<const TermId> found(const Step& step) const {
            return std::span(ids).subspan(step.at + step.keys, step.found);
        }
        std::span<const std::uint16_t> rows_found(const Step& step) const {
            return std::span(rows).subspan(step.at + step.keys, step.found);
        }
    };
    /// Rows: beside what was found.
    template <class Rows, class Found>
    void add(Kind kind, std::uint32_t source, std::uint64_t version, Label label, Dir dir, std::span<const TermId> keys,
             const Rows& rows, const Found& found);
    Notes& notes() { return both_[turn_]; }
    const Notes& last_notes() const { return both_[1 - turn_]; }
    bool again(const Step& step, const Source& source);
    bool expands_again(const Step& step, const Source& source);
    bool few_changed(const Step& step, const Source& source, std::span<const TermId> keys);

    // What a run that changes nothing reads, side by side.
    std::uint64_t labels_ = 0;  // identity of the table that the steps' labels belong to; 0: nothing is remembered
    std::uint32_t misses_ = 0;  // attempts in a row in which a look-up gave something else
    std::uint32_t pause_ = 0;   // runs until the next attempt: look-ups that change all the time are not noted
    std::size_t same_ = 0;      // of the last notes' steps, so many give the same as they did
    bool noting_ = false;
    bool few_ = false;      // what few_changed() said last: of the first of them that does not, changed_ is known
    bool recalls_ = false;  // from the last notes
    std::uint8_t turn_ = 0;
    std::array<Notes, 2> both_;
    std::vector<Column> seed_;
    Answer answer_;
    Matches matches_;
    std::vector<Label> found_labels_;
    std::vector<std::uint8_t> flags_;
    std::vector<std::uint32_t> changed_;
};

}  // namespace penstock::exec
