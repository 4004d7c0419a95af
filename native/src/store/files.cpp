#include "store/files.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>

#include "errors.hpp"

namespace penstock::files {

void fail(const std::string& do_what, const std::string& path) {
    throw StorageError("cannot " + do_what + " " + path + ": " + std::generic_category().message(errno));
}

namespace {

constexpr std::size_t kPiece = std::size_t{1} << 30;  // read(2) and write(2) transfer at most 2 GiB at once

}  // namespace

File::File(const std::string& path, int flags) : path_(path), fd_(::open(path.c_str(), flags | O_CLOEXEC, 0600)) {
    if (fd_ < 0) fail("open", path_);
}

File::~File() { ::close(fd_); }

void File::write(std::string_view content) const {
    while (!content.empty()) {
        const ssize_t n = ::write(fd_, content.data(), std::min(content.size(), kPiece));
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) fail("write", path_);
        content.remove_prefix(static_cast<std::size_t>(n));
    }
}

void File::write_at(std::uint64_t offset, std::string_view content) const {
    while (!content.empty()) {
        const ssize_t n = ::pwrite(fd_, content.data(), std::min(content.size(), kPiece), static_cast<off_t>(offset));
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) fail("write", path_);
        content.remove_prefix(static_cast<std::size_t>(n));
        offset += static_cast<std::uint64_t>(n);
    }
}

void File::read(std::span<char> content) const {
    while (!content.empty()) {
        const ssize_t n = ::read(fd_, content.data(), std::min(content.size(), kPiece));
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) fail("read", path_);
        if (n == 0) throw StorageError("file is truncated: " + path_);
        content = content.subspan(static_cast<std::size_t>(n));
    }
}

std::uint64_t File::size() const {
    struct stat info{};
    if (::fstat(fd_, &info) != 0) fail("read", path_);
    return static_cast<std::uint64_t>(info.st_size);
}

void File::flush() const {
    if (::fsync(fd_) != 0) fail("flush", path_);
}

NewFile::NewFile(const std::string& path)
    : path_(path), unfinished_(path + ".tmp"), file_(unfinished_, O_RDWR | O_CREAT | O_TRUNC) {}

NewFile::~NewFile() {
    if (!published_) ::unlink(unfinished_.c_str());
}

void NewFile::publish() {
    file_.flush();
    if (::rename(unfinished_.c_str(), path_.c_str()) != 0) fail("rename", unfinished_);
    published_ = true;
}

void write(const std::string& path, std::string_view content) {
    NewFile made(path);
    made.file().write(content);
    made.publish();
}

std::string read(const std::string& path) {
    const File file(path, O_RDONLY);
    std::string content(file.size(), '\0');
    file.read(content);
    return content;
}

void make_directory(const std::string& path) {
    std::error_code error;
    std::filesystem::create_directories(path, error);
    if (error) throw StorageError("cannot create " + path + ": " + error.message());
}

void flush_directory(const std::string& path) { File(path, O_RDONLY | O_DIRECTORY).flush(); }

}  // namespace penstock::files
