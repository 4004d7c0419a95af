// Memo of a run's look-ups and of its answer. If all look-ups give the same results again, the answer is reused.
//
// A small standing query is evaluated at every step of its window, and most steps do not change what it reads (ADR
// 48; CQELS, JWS'16, caches operators' results in a similar way). The cost of such an evaluation is dominated by cold
// cache lines of operators' code and data. Repeating the look-ups on the sources avoids these misses.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "exec/table.hpp"
#include "source.hpp"

namespace penstock::exec {

struct EdgeSet;

/// The look-ups of a run in order, up to a limited number. A plan whose rows depend only on its seed and on look-ups
/// gives the same rows if it makes the same look-ups with the same results.
class LookupMemo {
public:
    enum class Kind : std::uint8_t { Expand, Contains, Labels };

    /// Returns whether the seed equals the seed of the last run. If not, records the new seed.
    bool same_seed(const Table& seed);
    /// Starts a run with the seed of the previous run. Returns whether the look-ups of this run should be recorded.
    bool begin();
    /// Returns the neighbours of keys that the last run has recorded. Updates them and records them again for this run.
    /// Returns null if they are not recorded. The result is valid until the next run.
    const Matches* cached_neighbours(const EdgeSet& edges, Dir dir, std::span<const TermId> keys);
    void expanded(const EdgeSet& edges, Dir dir, std::span<const TermId> keys, const Matches& found);
    void tested(const EdgeSet& edges, std::span<const TermId> subjects, std::span<const TermId> objects,
                std::span<const std::uint8_t> found);
    void probed(std::uint32_t source, Dir dir, std::span<const TermId> keys, std::span<const std::uint32_t> rows,
                std::span<const Label> labels);
    /// Stops recording, because the run has read something that cannot be recorded.
    void abandon() { recording_ = false; }
    /// Ends the run.
    void end(const Answer& answer, std::uint64_t labels);

    /// Returns whether every look-up gives its recorded result. `labels`: the identity of the label table. If the first
    /// look-up with a different result is an expansion, the new result is recorded.
    bool still_valid(std::span<const Source* const> sources, std::uint64_t labels);
    const Answer& answer() const { return answer_; }

private:
    static constexpr std::size_t kSteps = 8;
    static constexpr std::size_t kIds = 1024;    // of all keys and of a step's results
    static constexpr std::size_t kCells = 2048;  // of an answer
    static constexpr std::uint32_t kHabit =
        6;  // consecutive changes after which look-ups are expected to keep changing
    static constexpr std::uint32_t kLongestPauseBits = 6;

    struct Step {
        std::uint64_t version;  // of the source at the last check
        Label label;
        std::uint16_t source;
        std::uint16_t at, keys;  // offset in keys_, and count
        Kind kind;
        Dir dir;
    };
    std::span<const TermId> keys(const Step& step) const { return std::span(keys_).subspan(step.at, step.keys); }
    /// Rows: parallel to the results.
    template <class Rows, class Found>
    void add(Kind kind, std::uint32_t source, std::uint64_t version, Label label, Dir dir, std::span<const TermId> keys,
             const Rows& rows, const Found& found);
    bool is_next(Kind kind, std::uint32_t source, Label label, Dir dir, std::span<const TermId> keys) const;
    void truncate();
    bool recheck(std::size_t number, const Source& source);
    bool update(std::size_t number, const Source& source);
    bool repeat_lookup(std::size_t number, const Source& source);
    bool patch(Matches& found, std::uint32_t key);

    // The fields that a run with unchanged look-ups reads are adjacent.
    std::uint64_t labels_ = 0;  // identity of the label table that the steps use; 0: the memo is empty
    std::uint32_t misses_ = 0;  // consecutive runs with a changed look-up
    std::uint32_t pause_ = 0;   // runs until the next recording; grows if look-ups change in each run
    std::size_t count_ = 0;     // recorded steps; while recording, steps of the last run from next_ on are included
    std::size_t next_ = 0;      // next step of the recorded run
    std::size_t same_ = 0;      // number of steps that are checked and up to date
    bool recording_ = false;
    bool reuses_ = false;  // whether results of the last run are reusable
    std::array<Step, kSteps> steps_;
    std::vector<TermId> keys_;           // of all steps, concatenated
    std::array<Matches, kSteps> found_;  // results of each step; of a test: the objects, and 1 for each found object
    std::vector<Column> seed_;
    Answer answer_;
    Matches matches_;
    std::vector<Label> found_labels_;
    std::vector<std::uint8_t> flags_;
    std::vector<std::uint32_t> changed_;
};

}  // namespace penstock::exec
