// The vertices whose lists a window's last move has changed, for readers who know what these were before it.
#pragma once

#include <bitset>
#include <cstdint>

namespace penstock {

/// A set of hashes that may have more than was put in. Moves are named by the versions that they lead to.
class Touched {
public:
    explicit Touched(std::uint64_t version) : from_(version) {}

    /// All of that move is known: it began when this was here already.
    bool knows(std::uint64_t move) const { return from_ != move; }
    void add(std::uint32_t hash, std::uint64_t move) {
        if (move != move_) {
            move_ = move;
            hashes_.reset();
        }
        hashes_.set(bit(hash));
    }
    bool may_have(std::uint32_t hash, std::uint64_t move) const { return move == move_ && hashes_.test(bit(hash)); }

private:
    static constexpr unsigned kBits =
        12;  // a hundred keys against the changes of a batch of LSBench at x20: two are mistaken
    static std::size_t bit(std::uint32_t hash) { return hash >> (32 - kBits); }

    std::uint64_t from_;
    std::uint64_t move_ = 0;  // which the hashes are of
    std::bitset<std::size_t{1} << kBits> hashes_;
};

}  // namespace penstock
