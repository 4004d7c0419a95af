// Whole files, written so that they last: what a checkpoint is made of.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace penstock::files {

// All throw StorageError with the path and the reason.

/// "cannot `do_what` `path`: " and what errno means.
[[noreturn]] void fail(const std::string& do_what, const std::string& path);

/// The file appears under its name whole and flushed, or not at all. Its name lasts after flush_directory().
void write(const std::string& path, std::string_view content);
std::string read(const std::string& path);
/// The file must have exactly so many bytes.
void read_into(const std::string& path, std::span<char> content);
void make_directory(const std::string& path);
void flush_directory(const std::string& path);

}  // namespace penstock::files
