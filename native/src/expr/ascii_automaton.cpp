#include "expr/ascii_automaton.hpp"

#include <algorithm>
#include <map>

#include "expr/pattern_syntax.hpp"

namespace penstock::expr {
namespace {

constexpr std::size_t kMaxInstructions = 500;
constexpr std::size_t kMaxStates = 250;
constexpr std::size_t kMaxEmitted = 10'000;    // parts of the pattern, with repeated parts written out
constexpr std::size_t kMaxFollowed = 500'000;  // instructions that the subset construction follows: a few ms

struct TooLarge {};  // ends the compilation; inside of this file only

/// An instruction of the nondeterministic automaton (Thompson, CACM 11:6, 1968).
struct Instruction {
    enum class Kind : std::uint8_t { Set, Begin, End, Split, Match };
    Kind kind = Kind::Match;
    std::uint32_t next = 0, other = 0;  // other: Split
    AsciiSet set;                       // Set
};

class Program {
public:
    explicit Program(const PatternTree& tree) : tree_(tree) {
        emit(tree.root);
        add({});
    }
    const std::vector<Instruction>& code() const { return code_; }

private:
    using Kind = Instruction::Kind;

    std::uint32_t here() const { return static_cast<std::uint32_t>(code_.size()); }
    std::uint32_t add(Instruction instruction) {
        if (code_.size() >= kMaxInstructions) throw TooLarge{};
        code_.push_back(instruction);
        return here() - 1;
    }

    /// Appends the code of a part. After a match of the part, the code continues with the instruction that follows.
    void emit(std::uint32_t number) {
        if (++emitted_ > kMaxEmitted) throw TooLarge{};  // parts without instructions can be nested and repeated
        const PatternPart& part = tree_.parts[number];
        switch (part.kind) {
            case PatternPart::Kind::Set:
                add({Kind::Set, here() + 1, 0, part.set});
                return;
            case PatternPart::Kind::Begin:
                add({Kind::Begin, here() + 1, 0, {}});
                return;
            case PatternPart::Kind::End:
                add({Kind::End, here() + 1, 0, {}});
                return;
            case PatternPart::Kind::Sequence:
                for (const std::uint32_t inner : part.parts) emit(inner);
                return;
            case PatternPart::Kind::Alternatives:
                alternatives(part);
                return;
            case PatternPart::Kind::Repeat:
                repeat(part);
                return;
        }
    }

    void alternatives(const PatternPart& part) {
        std::vector<std::uint32_t> ends;
        for (std::size_t i = 0; i < part.parts.size(); ++i) {
            const bool last = i + 1 == part.parts.size();
            const std::uint32_t split = last ? 0 : add({Kind::Split, here() + 1, 0, {}});
            emit(part.parts[i]);
            if (last) break;
            ends.push_back(add({Kind::Split, 0, 0, {}}));
            code_[split].other = here();
        }
        for (const std::uint32_t end : ends) code_[end].next = code_[end].other = here();
    }

    void repeat(const PatternPart& part) {
        for (std::uint32_t i = 0; i < part.least; ++i) emit(part.parts[0]);
        if (part.most == PatternPart::kUnbounded) {
            const std::uint32_t split = add({Kind::Split, here() + 1, 0, {}});
            emit(part.parts[0]);
            add({Kind::Split, split, split, {}});
            code_[split].other = here();
            return;
        }
        std::vector<std::uint32_t> splits;
        for (std::uint32_t i = part.least; i < part.most; ++i) {
            splits.push_back(add({Kind::Split, here() + 1, 0, {}}));
            emit(part.parts[0]);
        }
        for (const std::uint32_t split : splits) code_[split].other = here();
    }

    const PatternTree& tree_;
    std::vector<Instruction> code_;
    std::size_t emitted_ = 0;
};

}  // namespace

/// Builds the deterministic automaton by the subset construction. A match can begin at any character, so each state
/// contains the start of the program.
class AutomatonBuilder {
public:
    explicit AutomatonBuilder(const std::vector<Instruction>& code) : code_(code), seen_(code.size(), 0) {
        classify();
        out_.found_at_end_ = {0, 1};
        out_.next_.assign(2 * out_.classes_, AsciiAutomaton::kDead);
        out_.first_ = state({0}, true);
        while (done_ < pending_.size()) {
            const Waiting from = pending_[done_++];
            for (std::size_t c = 0; c < out_.classes_; ++c)
                out_.next_[from.state * out_.classes_ + c] = step(from.reached->first, c);
        }
    }

    AsciiAutomaton take() { return std::move(out_); }

private:
    using Kind = Instruction::Kind;
    using Reached = std::vector<std::uint32_t>;  // Set and End instructions, ascending
    using States = std::map<std::pair<Reached, bool>, std::uint16_t>;
    struct Waiting {
        const std::pair<Reached, bool>* reached;
        std::uint16_t state;
    };

    /// Numbers the characters so that characters of one class are in the same sets.
    void classify() {
        std::map<std::vector<bool>, std::uint8_t> numbers;
        for (std::size_t c = 0; c < 128; ++c) {
            std::vector<bool> in;
            for (const Instruction& each : code_)
                if (each.kind == Kind::Set) in.push_back(each.set[c]);
            const auto [entry, fresh] = numbers.try_emplace(std::move(in), static_cast<std::uint8_t>(numbers.size()));
            out_.class_of_[c] = entry->second;
            if (fresh) samples_.push_back(c);
        }
        out_.classes_ = samples_.size();
    }

    /// Follows the instructions that read no character. Returns whether this reaches the end of the program.
    bool follow(std::uint32_t start, bool begin, bool end, Reached& reached) {
        std::vector<std::uint32_t> stack = {start};
        while (!stack.empty()) {
            const std::uint32_t at = stack.back();
            stack.pop_back();
            if (++followed_ > kMaxFollowed) throw TooLarge{};
            if (seen_[at] == round_) continue;
            seen_[at] = round_;
            const Instruction& each = code_[at];
            if (each.kind == Kind::Match) return true;
            if (each.kind == Kind::Set || (each.kind == Kind::End && !end)) reached.push_back(at);
            if (each.kind == Kind::Split) stack.push_back(each.other);
            if (each.kind == Kind::Split || (each.kind == Kind::Begin && begin) || (each.kind == Kind::End && end))
                stack.push_back(each.next);
        }
        return false;
    }

    /// Returns the state after these instructions, and adds it if it is new. `begin`: no character was read yet.
    std::uint16_t state(const std::vector<std::uint32_t>& starts, bool begin) {
        Reached reached;
        ++round_;
        for (const std::uint32_t start : starts)
            if (follow(start, begin, false, reached)) return AsciiAutomaton::kFound;
        if (reached.empty()) return AsciiAutomaton::kDead;
        std::sort(reached.begin(), reached.end());
        const auto number = static_cast<std::uint16_t>(states_.size() + 2);
        const auto [entry, fresh] = states_.try_emplace({std::move(reached), begin}, number);
        if (!fresh) return entry->second;
        if (states_.size() > kMaxStates) throw TooLarge{};
        out_.next_.resize(out_.next_.size() + out_.classes_);
        out_.found_at_end_.push_back(matches_at_end(entry->first.first, begin));
        pending_.push_back({&entry->first, number});
        return number;
    }

    bool matches_at_end(const Reached& reached, bool begin) {
        Reached ignored;
        ++round_;
        return std::any_of(reached.begin(), reached.end(), [&](std::uint32_t at) {
            return code_[at].kind == Kind::End && follow(code_[at].next, begin, true, ignored);
        });
    }

    std::uint16_t step(const Reached& reached, std::size_t char_class) {
        std::vector<std::uint32_t> starts = {0};
        for (const std::uint32_t at : reached)
            if (code_[at].kind == Kind::Set && code_[at].set[samples_[char_class]]) starts.push_back(code_[at].next);
        return state(starts, false);
    }

    const std::vector<Instruction>& code_;
    std::vector<std::uint32_t> seen_;  // by instruction: the last round that has visited it
    std::uint32_t round_ = 0;
    std::size_t followed_ = 0;
    std::vector<std::size_t> samples_;  // a character of each class
    States states_;
    std::vector<Waiting> pending_;
    std::size_t done_ = 0;
    AsciiAutomaton out_;
};

std::shared_ptr<const AsciiAutomaton> AsciiAutomaton::compile(std::string_view pattern, std::string_view flags) {
    const auto tree = parse_pattern(pattern, flags);
    if (!tree) return nullptr;
    try {
        const Program program(*tree);
        return std::make_shared<const AsciiAutomaton>(AutomatonBuilder(program.code()).take());
    } catch (const TooLarge&) {
        return nullptr;
    }
}

}  // namespace penstock::expr
