// What the last run looked up and what it answered: where all of it is found again, the answer stands.
//
// A small standing query is evaluated every step of its window, and most steps change nothing that it reads (ADR
// 48; "operator-aware" evaluation of CQELS, JWS'16, keeps operators' results likewise). What it costs then is not
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
    /// The neighbours of keys as the last run noted them, brought up to date and noted again; null where that is not
    /// known. They stay until the next run.
    const Matches* recall(const EdgeSet& edges, Dir dir, std::span<const TermId> keys);
    void expanded(const EdgeSet& edges, Dir dir, std::span<const TermId> keys, const Matches& found);
    void tested(const EdgeSet& edges, std::span<const TermId> subjects, std::span<const TermId> objects,
                std::span<const std::uint8_t> found);
    void probed(std::uint32_t source, Dir dir, std::span<const TermId> keys, std::span<const std::uint32_t> rows,
                std::span<const Label> labels);
    /// The run read something else, or too much.
    void give_up() { noting_ = false; }
    /// The run is over.
    void end(const Answer& answer, std::uint64_t labels);

    /// Whether every look-up gives what it gave, over a label table of that identity. The first that does not is noted
    /// as it is now, where it is an expansion.
    bool holds(std::span<const Source* const> sources, std::uint64_t labels);
    const Answer& answer() const { return answer_; }

private:
    static constexpr std::size_t kSteps = 8;
    static constexpr std::size_t kIds = 1024;    // of all keys and of what a step has found
    static constexpr std::size_t kCells = 2048;  // of an answer
    static constexpr std::uint32_t kHabit = 6;   // look-ups that change so often in a row do so nearly always
    static constexpr std::uint32_t kLongestPauseBits = 6;

    struct Step {
        std::uint64_t version;  // of the source that gave this, or gave it again
        Label label;
        std::uint16_t source;
        std::uint16_t at, keys;  // where in keys_, and how many
        Kind kind;
        Dir dir;
    };
    std::span<const TermId> keys(const Step& step) const { return std::span(keys_).subspan(step.at, step.keys); }
    /// Rows: beside what was found.
    template <class Rows, class Found>
    void add(Kind kind, std::uint32_t source, std::uint64_t version, Label label, Dir dir, std::span<const TermId> keys,
             const Rows& rows, const Found& found);
    bool asked_next(Kind kind, std::uint32_t source, Label label, Dir dir, std::span<const TermId> keys) const;
    void cut();
    bool again(std::size_t number, const Source& source);
    bool bring_up(std::size_t number, const Source& source);
    bool look_up_again(std::size_t number, const Source& source);
    bool patch(Matches& found, std::uint32_t key);

    // What a run that changes nothing reads, side by side.
    std::uint64_t labels_ = 0;  // identity of the table that the steps' labels belong to; 0: nothing is remembered
    std::uint32_t misses_ = 0;  // attempts in a row in which a look-up gave something else
    std::uint32_t pause_ = 0;   // runs until the next attempt: look-ups that change all the time are not noted
    std::size_t count_ = 0;     // steps that are noted; of the run before, too, while one is noted that may recall them
    std::size_t next_ = 0;      // of the run that is noted
    std::size_t same_ = 0;      // so many steps were looked at, and are up to date
    bool noting_ = false;
    bool recalls_ = false;  // from the last run
    std::array<Step, kSteps> steps_;
    std::vector<TermId> keys_;           // of all steps, one behind the other
    std::array<Matches, kSteps> found_;  // of each step; of a test the objects, and 1 beside those that were found
    std::vector<Column> seed_;
    Answer answer_;
    Matches matches_;
    std::vector<Label> found_labels_;
    std::vector<std::uint8_t> flags_;
    std::vector<std::uint32_t> changed_;
};

}  // namespace penstock::exec
