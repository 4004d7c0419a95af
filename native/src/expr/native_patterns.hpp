// The regular expressions of an evaluation that need no call of Python.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "expr/ascii_automaton.hpp"
#include "expr/plain_pattern.hpp"

namespace penstock::expr {

/// A compiled pattern. If both members are empty, only Python can match it.
struct NativePattern {
    std::optional<PlainPattern> plain;
    std::shared_ptr<const AsciiAutomaton> automaton;  // for texts in ASCII; null if `plain` is set
};

/// Compiled patterns by pattern and flags. A full cache is cleared.
class NativePatterns {
public:
    /// The result is valid until the next call. `flags`: see `valid_flags`.
    const NativePattern& get(std::string_view pattern, std::string_view flags);

private:
    static constexpr std::size_t kMaxEntries = 64;
    std::string key_;  // of `last_`
    const NativePattern* last_ = nullptr;
    std::unordered_map<std::string, NativePattern> known_;
};

}  // namespace penstock::expr
