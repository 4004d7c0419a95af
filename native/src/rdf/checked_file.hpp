// Files that exist completely or not at all. A file is written under a temporary name, with a checksum, then synced,
// and finally renamed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace penstock {

/// Writes a file: first under the name `path`.tmp, then renamed to `path`. Every failure is a StorageError with the
/// path and the system's reason. Without commit() the destructor removes the temporary file.
class CheckedWriter {
public:
    explicit CheckedWriter(std::string path);
    ~CheckedWriter();
    CheckedWriter(const CheckedWriter&) = delete;
    CheckedWriter& operator=(const CheckedWriter&) = delete;

    void write(const void* data, std::size_t bytes);
    template <class T>
    void put(const T& value) {
        write(&value, sizeof value);
    }
    /// Appends the checksum, syncs, renames, and syncs the directory.
    void commit();

private:
    void flush();
    [[noreturn]] void fail(const char* what) const;

    std::string path_;
    std::string temporary_;
    int file_ = -1;
    std::uint64_t checksum_ = 0;
    std::vector<char> buffer_;
};

/// Reads a file of CheckedWriter. The constructor verifies the whole file: StorageError if it is damaged.
class CheckedReader {
public:
    explicit CheckedReader(std::string path);
    ~CheckedReader();
    CheckedReader(const CheckedReader&) = delete;
    CheckedReader& operator=(const CheckedReader&) = delete;

    /// StorageError if fewer bytes are left.
    void read(void* data, std::size_t bytes);
    template <class T>
    T get() {
        T value;
        read(&value, sizeof value);
        return value;
    }
    std::uint64_t left() const { return left_; }

private:
    void verify();
    std::size_t fill(std::size_t bytes);
    [[noreturn]] void fail(const char* what) const;

    std::string path_;
    int file_ = -1;
    std::uint64_t left_ = 0;  // content bytes not yet read
    std::vector<char> buffer_;
    std::size_t at_ = 0;
};

}  // namespace penstock
