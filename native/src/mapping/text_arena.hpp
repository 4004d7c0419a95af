// Memory for many small texts that live as long as the arena. Texts do not move.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <string_view>
#include <vector>

namespace penstock {

class TextArena {
public:
    std::string_view copy(std::string_view text) {
        if (text.empty()) return {};
        if (static_cast<std::size_t>(end_ - at_) < text.size()) grow(text.size());
        std::memcpy(at_, text.data(), text.size());
        const std::string_view copied(at_, text.size());
        at_ += text.size();
        return copied;
    }

private:
    static constexpr std::size_t kBlock = std::size_t{64} << 10;

    void grow(std::size_t bytes) {
        const std::size_t size = std::max(bytes, blocks_.empty() ? kBlock / 16 : kBlock);
        blocks_.push_back(std::make_unique_for_overwrite<char[]>(size));
        at_ = blocks_.back().get();
        end_ = at_ + size;
    }

    std::vector<std::unique_ptr<char[]>> blocks_;
    char* at_ = nullptr;
    char* end_ = nullptr;
};

}  // namespace penstock
