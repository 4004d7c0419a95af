// A plain serialization format: magic, fixed-width values and columns in the machine's byte order, then a checksum.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "errors.hpp"
#include "rdf/hash.hpp"

namespace penstock {

class ByteWriter {
public:
    explicit ByteWriter(std::string_view magic) : bytes_(magic) {}

    template <class T>
    void put(T value) {
        static_assert(std::is_arithmetic_v<T>);
        bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
    }
    template <class T>
    void put_column(std::span<const T> column) {
        static_assert(std::is_arithmetic_v<T>);
        put<std::uint64_t>(column.size());
        bytes_.append(reinterpret_cast<const char*>(column.data()), column.size_bytes());
    }
    void put_text(std::string_view text) { put_column(std::span<const char>(text)); }
    std::string finish() {
        put(hash_bytes(bytes_.data(), bytes_.size(), 0));
        return std::move(bytes_);
    }

private:
    std::string bytes_;
};

/// Throws StorageError that names `what` if the bytes are not the output of a ByteWriter.
class ByteReader {
public:
    ByteReader(std::string_view bytes, std::string_view magic, std::string what)
        : bytes_(bytes), what_(std::move(what)) {
        if (bytes.size() < magic.size() + sizeof(std::uint64_t)) fail("is cut short");
        if (bytes.substr(0, magic.size()) != magic) fail("is of another kind or version");
        std::uint64_t sum;
        std::memcpy(&sum, bytes.data() + bytes.size() - sizeof sum, sizeof sum);
        bytes_.remove_suffix(sizeof sum);
        if (hash_bytes(bytes_.data(), bytes_.size(), 0) != sum) fail("is damaged: its checksum differs");
        bytes_.remove_prefix(magic.size());
    }

    template <class T>
    T get() {
        T value;
        take(&value, 1);
        return value;
    }
    /// Reads an element count and checks that the remaining bytes can hold that many elements of `least_bytes` each.
    std::uint64_t get_count(std::size_t least_bytes) {
        const auto count = get<std::uint64_t>();
        if (count > bytes_.size() / least_bytes) fail("is cut short");
        return count;
    }
    std::string get_text() {
        const auto text = get_column<char>();
        return {text.begin(), text.end()};
    }
    template <class T>
    std::vector<T> get_column() {
        std::vector<T> column(get_count(sizeof(T)));
        take(column.data(), column.size());
        return column;
    }
    void finish() const {
        if (!bytes_.empty()) fail("is longer than it should be");
    }

private:
    template <class T>
    void take(T* to, std::size_t count) {
        static_assert(std::is_arithmetic_v<T>);
        const std::size_t size = count * sizeof(T);
        if (size > bytes_.size()) fail("is cut short");
        std::copy_n(bytes_.begin(), size, reinterpret_cast<char*>(to));
        bytes_.remove_prefix(size);
    }
    [[noreturn]] void fail(const char* how) const { throw StorageError("the saved " + what_ + " " + how); }

    std::string_view bytes_;
    std::string what_;
};

}  // namespace penstock
