// REGEX, REPLACE and the hashes. Most patterns of REGEX are matched here, others in Python
// (query/functions/text_functions.py).
#include "expr/functions.hpp"
#include "expr/utf8.hpp"

namespace penstock::expr {
namespace {

/// Reads the optional last argument as flags; false if it is not a string of known flags.
bool read_flags(std::span<const Value> args, std::size_t position, std::string_view& flags) {
    if (args.size() <= position) return true;
    flags = args[position].text;
    return args[position].type == ValueType::String && valid_flags(flags);
}

Value regex(Call& call, std::span<const Value> args) {
    std::string_view flags;
    if (!args[0].textual() || args[1].type != ValueType::String || !read_flags(args, 2, flags)) return {};
    const NativePattern& pattern = call.frame.memory.patterns.get(args[1].text, flags);
    if (pattern.plain) return Value::boolean(pattern.plain->matches(args[0].text));
    if (pattern.automaton && is_ascii(args[0].text)) return Value::boolean(pattern.automaton->matches(args[0].text));
    return call.frame.foreign("regex", args);
}

/// Replaces every match of a non-empty text, from left to right.
Value replace_plain(Call& call, const Value& subject, const PlainPattern& pattern, std::string_view replacement) {
    std::string out;
    std::size_t from = 0;
    for (std::size_t at = pattern.find(subject.text, 0); at != std::string_view::npos;
         at = pattern.find(subject.text, from)) {
        out.append(subject.text.substr(from, at - from)).append(replacement);
        check_text(out.size());
        from = at + pattern.text.size();
    }
    if (from == 0) return subject;
    out.append(subject.text.substr(from));
    return Value::string_like(subject, call.frame.keep(out));
}

Value replace(Call& call, std::span<const Value> args) {
    std::string_view flags;
    if (!args[0].textual() || args[1].type != ValueType::String || args[2].type != ValueType::String ||
        !read_flags(args, 3, flags))
        return {};
    const bool literal = flags.find('q') != std::string_view::npos;
    const bool plain_replacement = literal || args[2].text.find_first_of("$\\") == std::string_view::npos;
    const auto& plain = call.frame.memory.patterns.get(args[1].text, flags).plain;
    if (!plain || plain->at_start || plain->at_end || !plain_replacement) return call.frame.foreign("replace", args);
    if (plain->text.empty()) return {};  // matches the empty string: err:FORX0003
    return replace_plain(call, args[0], *plain, args[2].text);
}

Value hash(Call& call, std::span<const Value> args, std::string_view name) {
    return args[0].type == ValueType::String ? call.frame.foreign(name, args) : Value{};
}
Value md5(Call& call, std::span<const Value> args) { return hash(call, args, "md5"); }
Value sha1(Call& call, std::span<const Value> args) { return hash(call, args, "sha1"); }
Value sha256(Call& call, std::span<const Value> args) { return hash(call, args, "sha256"); }
Value sha384(Call& call, std::span<const Value> args) { return hash(call, args, "sha384"); }
Value sha512(Call& call, std::span<const Value> args) { return hash(call, args, "sha512"); }

}  // namespace

std::span<const FunctionEntry> pattern_functions() {
    static constexpr FunctionEntry kEntries[] = {
        {"regex", 2, 3, regex},   {"replace", 3, 4, replace}, {"md5", 1, 1, md5},       {"sha1", 1, 1, sha1},
        {"sha256", 1, 1, sha256}, {"sha384", 1, 1, sha384},   {"sha512", 1, 1, sha512},
    };
    return kEntries;
}

}  // namespace penstock::expr
