// The built-in functions: name, arity, and implementation on the values of one row.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "expr/frame.hpp"

namespace penstock::expr {

/// Members of a call's spec besides its arguments.
struct CallOptions {
    std::string base;        // iri
    std::size_t window = 0;  // window_start, window_end
};

struct Call {
    Frame& frame;
    const CallOptions& options;
    std::uint32_t row = 0;
};

/// Arguments are never errors. Returns Error for arguments outside of the function's domain.
using Function = Value (*)(Call& call, std::span<const Value> arguments);

struct FunctionEntry {
    std::string_view name;
    std::size_t least = 0, most = 0;  // arguments
    Function run = nullptr;
};

std::span<const FunctionEntry> term_functions();
std::span<const FunctionEntry> string_functions();
std::span<const FunctionEntry> pattern_functions();
std::span<const FunctionEntry> number_functions();
std::span<const FunctionEntry> time_functions();
std::span<const FunctionEntry> stream_functions();
std::span<const FunctionEntry> cast_functions();

}  // namespace penstock::expr
