// Whole files, written so that they last: what a checkpoint is made of.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace penstock::files {

// All throw StorageError with the path and the reason.

/// "cannot `do_what` `path`: " and what errno means.
[[noreturn]] void fail(const std::string& do_what, const std::string& path);

/// An open file. What is moved may be larger than one call of the system takes.
class File {
public:
    File(const std::string& path, int flags);
    ~File();
    File(const File&) = delete;
    File& operator=(const File&) = delete;

    void write(std::string_view content) const;
    void write_at(std::uint64_t offset, std::string_view content) const;
    /// Exactly so many bytes, from where the last read ended.
    void read(std::span<char> content) const;
    std::uint64_t size() const;
    void flush() const;

private:
    std::string path_;
    int fd_;
};

/// A file that appears under its name whole and flushed, or not at all. Its name lasts after flush_directory().
class NewFile {
public:
    explicit NewFile(const std::string& path);
    ~NewFile();  // without publish(): nothing remains
    const File& file() const { return file_; }
    void publish();

private:
    std::string path_, unfinished_;
    bool published_ = false;
    File file_;
};

/// A NewFile of that content.
void write(const std::string& path, std::string_view content);
std::string read(const std::string& path);
void make_directory(const std::string& path);
void flush_directory(const std::string& path);

}  // namespace penstock::files
