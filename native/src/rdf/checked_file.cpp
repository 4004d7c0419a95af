#include "rdf/checked_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "errors.hpp"
#include "rdf/hash.hpp"

namespace penstock {
namespace {

constexpr std::size_t kBlockBytes = std::size_t{1} << 20;  // the checksum is chained over blocks of this size
constexpr std::uint64_t kChecksumSeed = 0x70656e73746f636bULL;

std::string reason(const std::string& path, const char* what) {
    const int code = errno;
    return path + ": " + what + (code != 0 ? ": " + std::generic_category().message(code) : std::string());
}

void sync_folder(const std::string& path) {
    const std::filesystem::path parent = std::filesystem::path(path).parent_path();
    const int folder = ::open(parent.empty() ? "." : parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0) return;  // not every file system supports it
    ::fsync(folder);
    ::close(folder);
}

}  // namespace

CheckedWriter::CheckedWriter(std::string path)
    : path_(std::move(path)), temporary_(path_ + ".tmp"), checksum_(kChecksumSeed) {
    buffer_.reserve(kBlockBytes);
    file_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (file_ < 0) fail("cannot be created");
}

CheckedWriter::~CheckedWriter() {
    if (file_ < 0) return;
    ::close(file_);
    ::unlink(temporary_.c_str());
}

void CheckedWriter::fail(const char* what) const { throw StorageError(reason(temporary_, what)); }

void CheckedWriter::write(const void* data, std::size_t bytes) {
    const auto* from = static_cast<const char*>(data);
    while (bytes > 0) {
        const std::size_t part = std::min(bytes, kBlockBytes - buffer_.size());
        buffer_.insert(buffer_.end(), from, from + part);
        from += part;
        bytes -= part;
        if (buffer_.size() == kBlockBytes) {
            checksum_ = hash_bytes(buffer_.data(), buffer_.size(), checksum_);
            flush();
        }
    }
}

void CheckedWriter::flush() {
    for (std::size_t done = 0; done < buffer_.size();) {
        const ssize_t n = ::write(file_, buffer_.data() + done, buffer_.size() - done);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) fail("cannot be written");
        done += static_cast<std::size_t>(n);
    }
    buffer_.clear();
}

void CheckedWriter::commit() {
    if (!buffer_.empty()) checksum_ = hash_bytes(buffer_.data(), buffer_.size(), checksum_);
    const auto* sum = reinterpret_cast<const char*>(&checksum_);
    buffer_.insert(buffer_.end(), sum, sum + sizeof checksum_);
    flush();
    if (::fsync(file_) != 0) fail("cannot be synced");
    if (std::rename(temporary_.c_str(), path_.c_str()) != 0) fail("cannot be renamed");
    ::close(file_);
    file_ = -1;
    sync_folder(path_);
}

CheckedReader::CheckedReader(std::string path) : path_(std::move(path)) {
    file_ = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC);
    if (file_ < 0) fail("cannot be opened");
    try {
        verify();
    } catch (...) {
        ::close(file_);
        throw;
    }
}

CheckedReader::~CheckedReader() { ::close(file_); }

void CheckedReader::fail(const char* what) const { throw StorageError(reason(path_, what)); }

/// Reads the next `bytes` bytes of the file into the buffer.
std::size_t CheckedReader::fill(std::size_t bytes) {
    buffer_.resize(bytes);
    at_ = 0;
    for (std::size_t done = 0; done < bytes;) {
        const ssize_t n = ::read(file_, buffer_.data() + done, bytes - done);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) fail("cannot be read");
        if (n == 0) {
            errno = 0;
            fail("is cut short");
        }
        done += static_cast<std::size_t>(n);
    }
    return bytes;
}

void CheckedReader::verify() {
    struct stat status{};
    if (::fstat(file_, &status) != 0) fail("cannot be read");
    errno = 0;
    const auto size = static_cast<std::uint64_t>(status.st_size);
    if (size < sizeof(std::uint64_t)) fail("is cut short");
    const std::uint64_t content = size - sizeof(std::uint64_t);
    std::uint64_t checksum = kChecksumSeed;
    for (std::uint64_t done = 0; done < content;) {
        done += fill(static_cast<std::size_t>(std::min<std::uint64_t>(kBlockBytes, content - done)));
        checksum = hash_bytes(buffer_.data(), buffer_.size(), checksum);
    }
    fill(sizeof checksum);
    errno = 0;
    if (std::memcmp(buffer_.data(), &checksum, sizeof checksum) != 0) fail("is damaged: its checksum differs");
    if (::lseek(file_, 0, SEEK_SET) != 0) fail("cannot be read");
    buffer_.clear();
    at_ = 0;
    left_ = content;
}

void CheckedReader::read(void* data, std::size_t bytes) {
    errno = 0;
    if (bytes > left_) fail("is cut short");
    auto* to = static_cast<char*>(data);
    while (bytes > 0) {
        if (at_ == buffer_.size()) fill(static_cast<std::size_t>(std::min<std::uint64_t>(kBlockBytes, left_)));
        const std::size_t part = std::min(bytes, buffer_.size() - at_);
        std::memcpy(to, buffer_.data() + at_, part);
        at_ += part;
        left_ -= part;
        to += part;
        bytes -= part;
    }
}

}  // namespace penstock
