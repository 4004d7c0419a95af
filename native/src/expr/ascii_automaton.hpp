// Regular expressions over ASCII, as deterministic automata: one table look-up for each character.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

namespace penstock::expr {

/// Immutable, so threads may share it.
class AsciiAutomaton {
public:
    /// Null if the automaton would be too large, or if `parse_pattern` does not support the pattern.
    static std::shared_ptr<const AsciiAutomaton> compile(std::string_view pattern, std::string_view flags);

    /// Whether a part of the text matches the pattern. All characters of the text must be in ASCII.
    bool matches(std::string_view text) const {
        std::size_t state = first_;
        for (const char c : text) {
            if (state <= kFound) break;
            state = next_[state * classes_ + class_of_[static_cast<std::size_t>(c)]];
        }
        return found_at_end_[state] != 0;
    }

    /// The approximate size of the automaton in bytes.
    std::size_t bytes() const { return sizeof *this + next_.size() * sizeof next_[0] + found_at_end_.size(); }

private:
    friend class AutomatonBuilder;
    static constexpr std::uint16_t kDead = 0, kFound = 1;  // states that no character leaves

    std::array<std::uint8_t, 128> class_of_{};  // characters that every set of the pattern treats alike
    std::size_t classes_ = 0;
    std::vector<std::uint16_t> next_;         // by state and class
    std::vector<std::uint8_t> found_at_end_;  // by state: whether the pattern matches if the text ends here
    std::uint16_t first_ = kDead;
};

}  // namespace penstock::expr
