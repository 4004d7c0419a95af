#include "rdf/language_tag.hpp"

#include <algorithm>
#include <array>
#include <cstddef>

namespace penstock {
namespace {

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; }

bool equal_without_case(std::string_view a, std::string_view b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](char x, char y) { return lower(x) == lower(y); });
}

/// Iterates over subtags.
class Subtags {
public:
    explicit Subtags(std::string_view tag) : rest_(tag) { step(); }

    bool done() const { return done_; }
    std::string_view current() const { return current_; }
    void step() {
        if (rest_.data() == nullptr) {
            done_ = true;
            current_ = {};
            return;
        }
        const std::size_t dash = rest_.find('-');
        current_ = rest_.substr(0, dash);
        rest_ = dash == std::string_view::npos ? std::string_view() : rest_.substr(dash + 1);
    }
    bool letters(std::size_t from, std::size_t to) const { return fits(from, to) && all(is_letter); }
    bool digits(std::size_t n) const { return fits(n, n) && all(is_digit); }
    bool any(std::size_t from, std::size_t to) const {
        return fits(from, to) && all([](char c) { return is_letter(c) || is_digit(c); });
    }
    bool is(char c) const { return current_.size() == 1 && lower(current_[0]) == c; }

private:
    bool fits(std::size_t from, std::size_t to) const { return current_.size() >= from && current_.size() <= to; }
    template <class Test>
    bool all(Test test) const {
        return std::all_of(current_.begin(), current_.end(), test);
    }

    std::string_view rest_;
    std::string_view current_;
    bool done_ = false;
};

bool is_private_use(Subtags& subtags) {
    if (!subtags.is('x')) return false;
    subtags.step();
    if (subtags.done()) return false;
    for (; !subtags.done(); subtags.step())
        if (!subtags.any(1, 8)) return false;
    return true;
}

void skip_language(Subtags& subtags) {
    const bool short_language = subtags.letters(2, 3);
    subtags.step();
    for (int i = 0; short_language && i < 3 && subtags.letters(3, 3); ++i) subtags.step();              // extlang
    if (subtags.letters(4, 4)) subtags.step();                                                          // script
    if (subtags.letters(2, 2) || subtags.digits(3)) subtags.step();                                     // region
    while (subtags.any(5, 8) || (subtags.any(4, 4) && is_digit(subtags.current()[0]))) subtags.step();  // variants
}

bool is_regular(std::string_view tag) {
    Subtags subtags(tag);
    if (subtags.is('x')) return is_private_use(subtags);
    if (!subtags.letters(2, 8)) return false;
    skip_language(subtags);
    while (!subtags.done() && subtags.any(1, 1) && !subtags.is('x')) {  // extensions
        subtags.step();
        if (!subtags.any(2, 8)) return false;
        while (subtags.any(2, 8)) subtags.step();
    }
    return subtags.done() || is_private_use(subtags);
}

constexpr std::array<std::string_view, 17> kIrregular = {
    "en-GB-oed", "i-ami", "i-bnn", "i-default", "i-enochian", "i-hak",     "i-klingon", "i-lux",    "i-mingo",
    "i-navajo",  "i-pwn", "i-tao", "i-tay",     "i-tsu",      "sgn-BE-FR", "sgn-BE-NL", "sgn-CH-DE"};

}  // namespace

bool is_language_tag(std::string_view tag) {
    if (tag.size() == 2 && is_letter(tag[0]) && is_letter(tag[1])) return true;  // the vast majority
    return is_regular(tag) || std::any_of(kIrregular.begin(), kIrregular.end(),
                                          [&](std::string_view known) { return equal_without_case(tag, known); });
}

bool has_upper_case(std::string_view tag) {
    return std::any_of(tag.begin(), tag.end(), [](char c) { return c >= 'A' && c <= 'Z'; });
}

std::string lower_case(std::string_view tag) {
    std::string out(tag);
    std::transform(out.begin(), out.end(), out.begin(), lower);
    return out;
}

}  // namespace penstock
