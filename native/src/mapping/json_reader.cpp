#include "mapping/json_reader.hpp"

#include <algorithm>
#include <cstring>
#include <string>

#include "simdjson.h"

namespace penstock::mapping {
namespace {

namespace ondemand = simdjson::ondemand;

constexpr std::size_t kSortedFrom = 8;           // objects with more members are searched by bisection
constexpr std::size_t kMaxIntegerDigits = 4000;  // Python limits integers to 4,300 digits
constexpr std::size_t kMaxText = std::size_t{64} << 20;

[[noreturn]] void decline() { throw Declined{}; }

template <class T>
T taken(simdjson::simdjson_result<T> result) {
    T value;
    if (std::move(result).get(value) != simdjson::SUCCESS) decline();
    return value;
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::size_t digits(std::string_view text, std::size_t& at) {
    const std::size_t from = at;
    while (at < text.size() && is_digit(text[at])) ++at;
    return at - from;
}

/// The type of a number. Declined if the text is not a number of JSON (RFC 8259 §6).
ValueType number_type(std::string_view text) {
    std::size_t at = text.starts_with('-') ? 1 : 0;
    const bool zero = at < text.size() && text[at] == '0';
    const std::size_t whole = digits(text, at);
    if (whole == 0 || (zero && whole > 1)) decline();
    if (at == text.size()) {
        if (whole > kMaxIntegerDigits) decline();
        return ValueType::Integer;
    }
    if (text[at] == '.') {
        ++at;
        if (digits(text, at) == 0) decline();
    }
    if (at < text.size() && (text[at] == 'e' || text[at] == 'E')) {
        ++at;
        if (at < text.size() && (text[at] == '+' || text[at] == '-')) ++at;
        if (digits(text, at) == 0) decline();
    }
    if (at != text.size()) decline();
    return ValueType::Real;
}

std::string_view without_blanks(std::string_view token) {
    while (!token.empty() &&
           (token.back() == ' ' || token.back() == '\n' || token.back() == '\r' || token.back() == '\t'))
        token.remove_suffix(1);
    return token;
}

}  // namespace

struct JsonReader::Parser {
    ondemand::parser parser;
    std::vector<char> bytes;  // the text, and the bytes that simdjson may read behind it
};

JsonReader::JsonReader(const Program& program) : program_(program), parser_(std::make_unique<Parser>()) {}
JsonReader::~JsonReader() = default;

const Value& JsonReader::read(std::string_view text) {
    if (text.size() > kMaxText || text.starts_with("\xEF\xBB\xBF")) decline();
    std::vector<char>& bytes = parser_->bytes;
    if (bytes.size() < text.size() + simdjson::SIMDJSON_PADDING) bytes.resize(text.size() + simdjson::SIMDJSON_PADDING);
    std::memcpy(bytes.data(), text.data(), text.size());
    std::memset(bytes.data() + text.size(), ' ', simdjson::SIMDJSON_PADDING);
    values_.clear();
    open_.clear();
    ondemand::document document;
    if (parser_->parser.iterate(bytes.data(), text.size(), bytes.size()).get(document) != simdjson::SUCCESS) decline();
    const ondemand::json_type type = taken(document.type());
    if (type != ondemand::json_type::object && type != ondemand::json_type::array) decline();
    add(taken(document.get_value()), Names::kNone, 1, true);
    if (!document.at_end()) decline();
    root_ = open_.back();
    return root_;
}

template <class Json>
void JsonReader::add(Json json, std::uint32_t name, std::size_t depth, bool keep) {
    const std::string_view token = json.raw_json_token();
    if (token.empty()) decline();
    if (token[0] == '{') {
        if (depth > program_.max_depth) decline();
        const std::size_t from = open_.size();
        for (auto field : taken(json.get_object())) {
            std::string_view key = taken(field.escaped_key());
            if (key.find('\\') != std::string_view::npos) key = taken(field.unescaped_key());
            const std::uint32_t number = program_.names.find(key);
            add(taken(field.value()), number, depth + 1, keep && number != Names::kNone);
        }
        if (keep) close(ValueType::Object, name, from);
    } else if (token[0] == '[') {
        if (depth > program_.max_depth) decline();
        const std::size_t from = open_.size();
        for (auto element : taken(json.get_array())) add(taken(std::move(element)), Names::kNone, depth + 1, keep);
        if (keep) close(ValueType::Array, name, from);
    } else if (token[0] == '"') {
        const std::string_view quoted = without_blanks(token);
        if (quoted.size() < 2 || quoted.back() != '"') decline();
        std::string_view text = quoted.substr(1, quoted.size() - 2);
        if (text.find('\\') != std::string_view::npos) text = taken(json.get_string());
        if (keep) open_.push_back({ValueType::String, name, 0, 0, text});
    } else {
        scalar(without_blanks(token), name, keep);
    }
}

void JsonReader::scalar(std::string_view token, std::uint32_t name, bool keep) {
    ValueType type = ValueType::Null;
    if (token == "true") {
        type = ValueType::True;
    } else if (token == "false") {
        type = ValueType::False;
    } else if (token != "null") {
        type = number_type(token);
        if (type == ValueType::Integer && token == "-0") token = "0";
    }
    if (keep) open_.push_back({type, name, 0, 0, token});
}

void JsonReader::close(ValueType type, std::uint32_t name, std::size_t from) {
    const auto begin = open_.begin() + static_cast<std::ptrdiff_t>(from);
    auto end = open_.end();
    if (type == ValueType::Object && end - begin > static_cast<std::ptrdiff_t>(kSortedFrom)) {
        // Of members with the same name, the last one counts: it becomes the first of its name.
        std::reverse(begin, end);
        std::stable_sort(begin, end, [](const Value& a, const Value& b) { return a.name < b.name; });
        end = std::unique(begin, end, [](const Value& a, const Value& b) { return a.name == b.name; });
    }
    const Value made{
        type, name, static_cast<std::uint32_t>(values_.size()), static_cast<std::uint32_t>(end - begin), {}};
    values_.insert(values_.end(), begin, end);
    open_.resize(from);
    open_.push_back(made);
}

const Value* JsonReader::member(const Value& object, std::uint64_t name) const {
    const std::span<const Value> members = children(object);
    if (members.size() <= kSortedFrom) {
        for (std::size_t i = members.size(); i-- > 0;)
            if (members[i].name == name) return &members[i];
        return nullptr;
    }
    const auto found = std::lower_bound(members.begin(), members.end(), name,
                                        [](const Value& member, std::uint64_t sought) { return member.name < sought; });
    return found != members.end() && found->name == name ? &*found : nullptr;
}

}  // namespace penstock::mapping
