// Durable writing of whole files, for checkpoints.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace penstock::files {

// All functions throw StorageError with the path and the reason.

/// Throws "cannot `do_what` `path`: " followed by the description of errno.
[[noreturn]] void fail(const std::string& do_what, const std::string& path);

/// An open file. A read or write can be larger than the system accepts in one call.
class File {
public:
    File(const std::string& path, int flags);
    ~File();
    File(const File&) = delete;
    File& operator=(const File&) = delete;

    void write(std::string_view content) const;
    void write_at(std::uint64_t offset, std::string_view content) const;
    /// Reads exactly content.size() bytes, from the end of the previous read.
    void read(std::span<char> content) const;
    std::uint64_t size() const;
    void flush() const;

private:
    std::string path_;
    int fd_;
};

/// A file that is under its name either completely, with all bytes flushed, or not at all. The name is durable after
/// flush_directory().
class NewFile {
public:
    explicit NewFile(const std::string& path);
    ~NewFile();  // without publish(), removes the file
    const File& file() const { return file_; }
    void publish();

private:
    std::string path_, unfinished_;
    bool published_ = false;
    File file_;
};

/// Writes a NewFile with the given content.
void write(const std::string& path, std::string_view content);
std::string read(const std::string& path);
void make_directory(const std::string& path);
void flush_directory(const std::string& path);

}  // namespace penstock::files
