#include "mapping/mapper.hpp"

#include <algorithm>

#include "mapping/event_time.hpp"
#include "mapping/term_texts.hpp"
#include "rdf/iri.hpp"
#include "rdf/language_tag.hpp"

namespace penstock::mapping {
namespace {

constexpr std::int64_t kMaxTime = std::int64_t{1} << 60;
constexpr std::size_t kMaxTermBytes = std::size_t{1} << 20;
constexpr std::size_t kMaxEscape = 6;        // bytes of an escape of N-Triples
constexpr std::size_t kBytesPerTriple = 32;  // other than those of the terms
constexpr std::string_view kInteger = "http://www.w3.org/2001/XMLSchema#integer";
constexpr std::string_view kDouble = "http://www.w3.org/2001/XMLSchema#double";
constexpr std::string_view kBoolean = "http://www.w3.org/2001/XMLSchema#boolean";

[[noreturn]] void decline() { throw Declined{}; }

bool is_blank(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

bool is_time(std::int64_t time) { return -kMaxTime < time && time < kMaxTime; }

bool is_container(const Value& value) { return value.type == ValueType::Array || value.type == ValueType::Object; }

std::string_view text_of(const Value& value) {
    if (is_container(value)) decline();
    return value.text;  // true and false are their own texts
}

Value string_value(std::string_view text) { return {ValueType::String, Names::kNone, 0, 0, text}; }

}  // namespace

Mapper::Mapper(const Program& program, MappedBatch& batch)
    : program_(program), batch_(batch), json_(program), csv_(program) {}

// ---------------------------------------------------------------- messages
void Mapper::map(std::string_view message, std::optional<std::int64_t> time, std::uint32_t position) {
    const MappedBatch::Mark mark = batch_.mark();
    time_ = time;
    time_text_ = time ? std::to_string(*time) : std::string();
    try {
        if (time_ && !is_time(*time_)) decline();
        switch (program_.format) {
            case Format::Json:
                map_json(message, position);
                break;
            case Format::JsonLines:
                map_lines(message, position);
                break;
            case Format::Csv:
                map_rows(message, position);
                break;
        }
        if (batch_.events() == mark.events && !program_.of_file) decline();
    } catch (const Declined&) {
        batch_.cut(mark);
        batch_.declined.push_back(position);
    }
}

void Mapper::map_json(std::string_view message, std::uint32_t position) {
    const Value& root = json_.read(message);
    if (program_.events.empty()) return event({&root, 0}, position, message.size() + 1);
    const std::vector<const Value*> found = all(root, program_.events);
    for (const Value* value : found) event({value, 0}, position, message.size() / found.size() + 1);
}

void Mapper::map_lines(std::string_view message, std::uint32_t position) {
    std::vector<std::string_view> lines;
    while (!message.empty()) {
        const std::string_view line = message.substr(0, message.find('\n'));
        message.remove_prefix(std::min(message.size(), line.size() + 1));
        if (!std::all_of(line.begin(), line.end(), is_blank)) lines.push_back(line);
    }
    if (lines.size() > program_.max_values) decline();
    for (const std::string_view line : lines) event({&json_.read(line), 0}, position, line.size() + 1);
}

void Mapper::map_rows(std::string_view message, std::uint32_t position) {
    const std::size_t rows = csv_.read(message);
    for (std::size_t row = 0; row < rows; ++row) event({nullptr, row}, position, message.size() / rows + 1);
}

void Mapper::event(const Record& record, std::uint32_t position, std::size_t bytes) {
    const std::int64_t time = program_.of_file ? 0 : event_time(record);
    const std::size_t before = batch_.rows();
    fresh_ = 0;
    left_ = program_.max_bytes + program_.max_factor * std::min(bytes, program_.max_bytes);
    for (const Rule& each : program_.rules) {
        if (record.value == nullptr || each.iterator.empty()) {
            rule(each, record);
        } else {
            for (const Value* value : all(*record.value, each.iterator)) rule(each, {value, 0});
        }
    }
    if (batch_.rows() > before) return batch_.end_event(time, position);
    if (!program_.of_file) decline();
}

std::int64_t Mapper::event_time(const Record& record) const {
    const TimeRule& rule = program_.time;
    std::optional<std::int64_t> found = time_;
    if (rule.reference) {
        const std::optional<Value> value = single(*rule.reference, record);
        if (!value || is_container(*value) || value->type == ValueType::True || value->type == ValueType::False)
            decline();
        const bool iso = rule.unit == TimeUnit::Iso8601;
        if (iso && value->type != ValueType::String) decline();
        found = iso ? iso_time(value->text) : epoch_time(value->text, rule.unit);
    }
    if (!found || !is_time(*found)) decline();
    return *found;
}

void Mapper::rule(const Rule& rule, const Record& record) {
    if (rule.subject.is_fresh) {
        const TermIndex subject = fresh();
        for (const Statement& each : rule.statements) statement(each, record, subject);
        return;
    }
    std::vector<TermIndex> subjects;
    terms(rule.subject, record, subjects);
    for (const TermIndex subject : subjects)
        for (const Statement& each : rule.statements) statement(each, record, subject);
}

void Mapper::statement(const Statement& statement, const Record& record, TermIndex subject) {
    predicates_.clear();
    objects_.clear();
    for (const Term& term : statement.predicates) terms(term, record, predicates_);
    for (const Term& term : statement.objects) {
        if (term.is_fresh) {
            objects_.push_back(fresh());
        } else {
            terms(term, record, objects_);
        }
    }
    for (const TermIndex predicate : predicates_)
        for (const TermIndex object : objects_) triple(subject, predicate, object);
}

void Mapper::triple(TermIndex subject, TermIndex predicate, TermIndex object) {
    const TermView& value = batch_.term(object);
    const std::size_t bytes = batch_.term(subject).lexical.size() + batch_.term(predicate).lexical.size() +
                              kMaxEscape * value.lexical.size() + value.datatype.size() + value.lang.size() +
                              kBytesPerTriple;
    if (bytes > left_) decline();
    left_ -= bytes;
    batch_.add_triple(subject, predicate, object);
}

// ---------------------------------------------------------------- values
const Value* Mapper::find(const Value& from, const Path& path) const {
    const Value* value = &from;
    for (const Step& step : path) {
        if (step.kind == Step::Kind::Member) {
            value = value->type == ValueType::Object ? json_.member(*value, step.number) : nullptr;
        } else if (value->type == ValueType::Array) {
            const auto elements = json_.children(*value);
            const bool from_end = step.kind == Step::Kind::FromEnd;
            const std::uint64_t place = from_end ? elements.size() - step.number : step.number;
            const bool exists = from_end ? step.number <= elements.size() : place < elements.size();
            value = exists ? &elements[place] : nullptr;
        } else {
            value = nullptr;
        }
        if (value == nullptr) return nullptr;
    }
    return value;
}

std::vector<const Value*> Mapper::all(const Value& from, const Path& path) const {
    std::vector<const Value*> found{&from};
    std::vector<const Value*> next;
    for (const Step& step : path) {
        next.clear();
        for (const Value* value : found) {
            if (step.kind != Step::Kind::All) {
                if (const Value* child = find(*value, {step})) next.push_back(child);
            } else if (value->type == ValueType::Object) {
                decline();  // only the members that the program names are known
            } else if (value->type == ValueType::Array) {
                for (const Value& element : json_.children(*value)) next.push_back(&element);
            }
        }
        if (next.size() > program_.max_values) decline();
        found.swap(next);
    }
    return found;
}

std::optional<Value> Mapper::single(const Part& part, const Record& record) const {
    switch (part.kind) {
        case Part::Kind::Path: {
            const Value* value = find(*record.value, part.path);
            if (value == nullptr || value->type == ValueType::Null) return std::nullopt;
            return *value;
        }
        case Part::Kind::Column: {
            const auto text = csv_.cell(record.row, part.column);
            return text ? std::optional(string_value(*text)) : std::nullopt;
        }
        case Part::Kind::Timestamp:
            if (!time_) return std::nullopt;
            return Value{ValueType::Integer, Names::kNone, 0, 0, time_text_};
        case Part::Kind::Text:
            break;
    }
    return string_value(part.text);
}

std::vector<Value> Mapper::plural(const Part& part, const Record& record) const {
    std::vector<Value> found;
    if (part.single) {
        if (const auto value = single(part, record)) found.push_back(*value);
        return found;
    }
    for (const Value* value : all(*record.value, part.path))
        if (value->type != ValueType::Null) found.push_back(*value);
    return found;
}

// ---------------------------------------------------------------- terms
template <class Take>
void Mapper::values(const Term& term, const Record& record, const Take& take) {
    const bool bare = term.parts.size() == 1 && !term.is_template && term.parts[0].kind != Part::Kind::Text;
    if (bare && term.single) {
        if (const auto value = single(term.parts[0], record)) take(*value);
    } else if (bare) {
        for (const Value& value : plural(term.parts[0], record)) take(value);
    } else if (!term.single) {
        combinations(term, record, take);
    } else {
        const bool encode = term.is_template && (term.kind == Term::Kind::Iri || term.kind == Term::Kind::Uri);
        joined_.clear();
        for (const Part& part : term.parts) {
            if (part.kind == Part::Kind::Text) {
                joined_ += part.text;
                continue;
            }
            const auto value = single(part, record);
            if (!value) return;
            if (encode) {
                append_encoded(joined_, text_of(*value), term.kind == Term::Kind::Uri);
            } else {
                joined_ += text_of(*value);
            }
        }
        take(string_value(joined_));
    }
}

template <class Take>
void Mapper::combinations(const Term& term, const Record& record, const Take& take) {
    const bool encode = term.is_template && (term.kind == Term::Kind::Iri || term.kind == Term::Kind::Uri);
    std::vector<std::vector<std::string>> choices;
    std::size_t number = 1;
    for (const Part& part : term.parts) {
        std::vector<std::string>& texts = choices.emplace_back();
        for (const Value& value : plural(part, record)) {
            std::string& text = texts.emplace_back();
            if (encode && part.kind != Part::Kind::Text) {
                append_encoded(text, text_of(value), term.kind == Term::Kind::Uri);
            } else {
                text = text_of(value);
            }
        }
        number *= texts.size();
        if (number > program_.max_values) decline();
    }
    for (std::size_t i = 0; i < number; ++i) {
        std::string text;
        std::size_t block = number;
        for (const std::vector<std::string>& texts : choices) {
            block /= texts.size();
            text += texts[i / block % texts.size()];
        }
        take(string_value(text));
    }
}

void Mapper::terms(const Term& term, const Record& record, std::vector<TermIndex>& out) {
    if (term.constant) {
        out.push_back(batch_.constant(*term.constant));
        return;
    }
    values(term, record, [&](const Value& value) {
        if (const auto made = view(term, value, record)) out.push_back(batch_.add(*made));
    });
}

std::optional<TermView> Mapper::view(const Term& term, const Value& value, const Record& record) {
    switch (term.kind) {
        case Term::Kind::Literal:
            return literal(term, value, record);
        case Term::Kind::Blank: {
            std::string label;
            append_label(label, text_of(value));
            return TermView{Kind::Blank, copied(label), {}, {}};
        }
        default:
            return TermView{Kind::Iri, iri(term, text_of(value)), {}, {}};
    }
}

std::optional<TermView> Mapper::literal(const Term& term, const Value& value, const Record& record) {
    if (!term.language && !term.datatype) {
        if (!term.is_template && term.parts.size() == 1) return natural(value);
        return TermView{Kind::Literal, copied(value.text), kXsdString, {}};
    }
    const std::string_view text = copied(text_of(value));  // before another value takes its place
    if (term.language) {
        const auto tag = first(*term.language, record);
        if (!tag) return std::nullopt;
        if (!is_language_tag(*tag)) decline();
        return TermView{Kind::Literal, text, kRdfLangString, *tag};
    }
    const auto datatype = first(*term.datatype, record);
    if (!datatype) return std::nullopt;
    if (*datatype == kRdfLangString) decline();
    return TermView{Kind::Literal, text, *datatype, {}};
}

TermView Mapper::natural(const Value& value) {
    switch (value.type) {
        case ValueType::Integer:
            return {Kind::Literal, copied(value.text), kInteger, {}};
        case ValueType::True:
        case ValueType::False:
            return {Kind::Literal, value.type == ValueType::True ? "true" : "false", kBoolean, {}};
        case ValueType::Real: {
            std::string text;
            if (!append_canonical_double(text, value.text)) decline();
            return {Kind::Literal, copied(text), kDouble, {}};
        }
        default:
            return {Kind::Literal, copied(text_of(value)), kXsdString, {}};
    }
}

std::string_view Mapper::iri(const Term& term, std::string_view text) {
    std::string with_base;
    if (!term.has_scheme && !has_scheme(text)) {
        if (!term.base) decline();
        with_base = *term.base;
        text = with_base += text;
    }
    if (!term.is_valid && iri_fault(text) != nullptr) decline();
    return copied(text);
}

std::optional<std::string_view> Mapper::first(const Term& term, const Record& record) {
    if (term.constant) return program_.constants[*term.constant].lexical;
    std::optional<std::string_view> found;
    values(term, record, [&](const Value& value) {
        if (term.kind == Term::Kind::Literal && value.type != ValueType::String) decline();
        const auto made = view(term, value, record);
        if (made && !found) found = made->lexical;
    });
    return found;
}

std::string_view Mapper::copied(std::string_view text) {
    if (text.size() > kMaxTermBytes) decline();
    return batch_.texts().copy(text);
}

Mapper::TermIndex Mapper::fresh() {
    return batch_.add({Kind::Blank, copied(MappedBatch::kFresh + std::to_string(++fresh_)), {}, {}});
}

}  // namespace penstock::mapping
