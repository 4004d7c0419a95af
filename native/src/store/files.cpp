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

constexpr std::size_t kPiece = std::size_t{1} << 30;  // read and write move at most 2 GiB at once

class File {
public:
    File(const std::string& path, int flags) : path_(path), fd_(::open(path.c_str(), flags | O_CLOEXEC, 0600)) {
        if (fd_ < 0) fail("open", path_);
    }
    ~File() { ::close(fd_); }
    File(const File&) = delete;
    File& operator=(const File&) = delete;

    void write(std::string_view content) const {
        while (!content.empty()) {
            const ssize_t n = ::write(fd_, content.data(), std::min(content.size(), kPiece));
            if (n < 0 && errno == EINTR) continue;
            if (n < 0) fail("write", path_);
            content.remove_prefix(static_cast<std::size_t>(n));
        }
    }
    std::size_t size() const {
        struct stat info{};
        if (::fstat(fd_, &info) != 0) fail("read", path_);
        return static_cast<std::size_t>(info.st_size);
    }
    void read(std::span<char> content) const {
        while (!content.empty()) {
            const ssize_t n = ::read(fd_, content.data(), std::min(content.size(), kPiece));
            if (n < 0 && errno == EINTR) continue;
            if (n < 0) fail("read", path_);
            if (n == 0) throw StorageError("file is truncated: " + path_);
            content = content.subspan(static_cast<std::size_t>(n));
        }
    }
    void flush() const {
        if (::fsync(fd_) != 0) fail("flush", path_);
    }

private:
    const std::string& path_;
    int fd_;
};

}  // namespace

void write(const std::string& path, std::string_view content) {
    const std::string unfinished = path + ".tmp";
    {
        const File file(unfinished, O_WRONLY | O_CREAT | O_TRUNC);
        file.write(content);
        file.flush();
    }
    if (::rename(unfinished.c_str(), path.c_str()) != 0) fail("rename", unfinished);
}

std::string read(const std::string& path) {
    const File file(path, O_RDONLY);
    std::string content(file.size(), '\0');
    file.read(content);
    return content;
}

void read_into(const std::string& path, std::span<char> content) {
    const File file(path, O_RDONLY);
    if (file.size() != content.size())
        throw StorageError("file has " + std::to_string(file.size()) + " bytes instead of " +
                           std::to_string(content.size()) + ": " + path);
    file.read(content);
}

void make_directory(const std::string& path) {
    std::error_code error;
    std::filesystem::create_directories(path, error);
    if (error) throw StorageError("cannot create " + path + ": " + error.message());
}

void flush_directory(const std::string& path) { File(path, O_RDONLY | O_DIRECTORY).flush(); }

}  // namespace penstock::files
