// A growing text. Unlike std::string, it does not initialise new memory, and it can give its memory to the caller.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <string_view>

namespace penstock {

class TextBuffer {
public:
    std::size_t size() const { return size_; }
    std::string_view text() const { return {data_.get(), size_}; }
    void clear() { size_ = 0; }
    /// Removes the end of the text. `size` is at most size().
    void shorten(std::size_t size) { size_ = size; }

    /// Returns the end of the text, with room for `bytes` more bytes. After the caller has written bytes there,
    /// advance() appends them to the text.
    char* room(std::size_t bytes) {
        if (capacity_ - size_ < bytes) grow(bytes);
        return data_.get() + size_;
    }
    void advance(std::size_t bytes) { size_ += bytes; }

    void append(std::string_view text) {
        if (text.empty()) return;
        std::memcpy(room(text.size()), text.data(), text.size());
        size_ += text.size();
    }
    void append(char c) {
        *room(1) = c;
        ++size_;
    }
    /// Appends `bytes` bytes of this text, from position `at`.
    void repeat(std::size_t at, std::size_t bytes) {
        char* const end = room(bytes);
        std::memcpy(end, data_.get() + at, bytes);
        size_ += bytes;
    }

private:
    struct Free {
        void operator()(char* data) const { std::free(data); }
    };

    void grow(std::size_t bytes) {
        const std::size_t capacity = std::max({std::size_t{1} << 10, capacity_ * 2, size_ + bytes});
        auto* const grown = static_cast<char*>(std::realloc(data_.get(), capacity));
        if (grown == nullptr) throw std::bad_alloc();
        static_cast<void>(data_.release());
        data_.reset(grown);
        capacity_ = capacity;
    }

    std::unique_ptr<char, Free> data_;
    std::size_t size_ = 0;
    std::size_t capacity_ = 0;
};

}  // namespace penstock
