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

/// The look-ups of a run in their order, as far as they are few. A plan whose rows follow from its seed and from
/// look-ups alone gives the same rows wherever it would make the same look-ups with the same results.
class Remembered {
public:
    enum class Kind : std::uint8_t { Expand, Contains, Labels };

    /// Whether the seed is that of the last run; notes it where it is not.
    bool same_seed(const Table& seed);
    /// A run with the seed of the one before is about to look up anew: whether its look-ups should be noted.
    bool begin();
    void expanded(std::uint32_t source, Label label, Dir dir, std::span<const TermId> keys, const Matches& found);
    void tested(std::uint32_t source, Label label, std::span<const TermId> subjects, std::span<const TermId> objects,
                std::span<const std::uint8_t> found);
    void probed(std::uint32_t source, Dir dir, std::span<const TermId> keys, std::span<const std::uint32_t> rows,
                std::span<const Label> labels);
    /// The run read something else, or too much.
    void give_up() { noting_ = false; }
    /// The run is over.
    void end(const Table& answer, std::uint64_t labels);

    /// Whether every look-up gives what it gave, over a label table of that identity.
    bool holds(std::span<const Source* const> sources, std::uint64_t labels);
    const Table& answer() const { return answer_; }

private:
    static constexpr std::size_t kSteps = 8, kIds = 64;
    static constexpr std::size_t kRows = 64;  // of an answer
    static constexpr std::uint32_t kLongestPause = 64;

    struct Step {
        Label label;
        std::uint16_t source;
        std::uint8_t keys, found;
        Kind kind;
        Dir dir;
    };
    /// Room for one more step with that many ids; null where there is none.
    Step* add(Kind kind, std::uint32_t source, std::size_t keys, std::size_t found);
    void put(TermId id) { ids_[used_++] = id; }
    bool again(const Step& step, const Source& source, std::span<const TermId> ids, std::span<const std::uint8_t> rows);

    // What a run that changes nothing reads, side by side.
    std::uint64_t labels_ = 0;  // identity of the table that the steps' labels belong to; 0: nothing is remembered
    std::uint32_t pause_ = 0,
                  longest_ = 0;  // runs until the next attempt: look-ups that change all the time are not noted
    std::uint8_t count_ = 0, used_ = 0;
    bool noting_ = false;
    std::array<Step, kSteps> steps_{};
    std::array<std::uint8_t, kIds> rows_{};  // beside what was found: the index of its key
    std::array<TermId, kIds> ids_{};         // of each step the keys, then what was found
    std::vector<Column> seed_;
    Table answer_;
    Matches matches_;
    std::vector<Label> found_labels_;
};

}  // namespace penstock::exec
