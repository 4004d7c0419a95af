// The vertices whose lists the last move of a window changed, for readers that know the state before it.
#pragma once

#include <bitset>
#include <cstdint>

namespace penstock {

/// A set of hashes with false positives. Each move is named by the version that it leads to.
class Touched {
public:
    explicit Touched(std::uint64_t version) : from_(version) {}

    /// Whether the whole move was recorded. This is the case if recording had started before the move.
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
    static constexpr unsigned kBits = 12;  // false positives: 2 of 100 keys for one batch of LSBench at x20
    static std::size_t bit(std::uint32_t hash) { return hash >> (32 - kBits); }

    std::uint64_t from_;
    std::uint64_t move_ = 0;  // the move that hashes_ belongs to
    std::bitset<std::size_t{1} << kBits> hashes_;
};

}  // namespace penstock
