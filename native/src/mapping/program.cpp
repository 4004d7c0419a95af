#include "mapping/program.hpp"

#include <algorithm>

#include "rdf/term_lexer.hpp"

namespace penstock::mapping {
namespace {

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool continues_scheme(char c) { return is_letter(c) || (c >= '0' && c <= '9') || c == '+' || c == '-' || c == '.'; }

std::size_t end_of_scheme(std::string_view text) {
    if (text.empty() || !is_letter(text[0])) return std::string_view::npos;
    const auto* const end = std::find_if_not(text.begin(), text.end(), continues_scheme);
    return end != text.end() && *end == ':' ? static_cast<std::size_t>(end - text.begin()) : std::string_view::npos;
}

/// Whether percent-encoded values behind this text can only be in the path, the query or the fragment. Templates are
/// checked with sample values when they are compiled, so the IRI is then valid for all values.
bool ends_authority(std::string_view text) {
    const std::size_t colon = end_of_scheme(text);
    if (colon == std::string_view::npos || colon + 1 == text.size()) return false;
    const std::string_view rest = text.substr(colon + 1);
    return rest[0] != '/' || (rest.starts_with("//") && rest.find_first_of("/?#", 2) != std::string_view::npos);
}

constexpr std::uint64_t kMaxIndex = std::uint64_t{1} << 31;

template <class T, std::size_t N>
T named(const std::string& text, const std::pair<const char*, T> (&known)[N]) {
    for (const auto& [name, value] : known)
        if (text == name) return value;
    throw Error("mapping: unknown '" + text + "'");
}

}  // namespace

bool has_scheme(std::string_view text) { return end_of_scheme(text) != std::string_view::npos; }

std::uint32_t Names::add(const std::string& name) {
    return numbers_.try_emplace(name, static_cast<std::uint32_t>(numbers_.size())).first->second;
}

Program::Program(const Spec& spec) {
    constexpr std::pair<const char*, Format> kFormats[] = {
        {"json", Format::Json}, {"ndjson", Format::JsonLines}, {"csv", Format::Csv}};
    format = named(spec.at("format").as_string(), kFormats);
    of_file = spec.at("of_file").as_bool();
    max_depth = spec.at("max_depth").as_int();
    max_values = spec.at("max_values").as_int();
    max_bytes = spec.at("max_bytes").as_int();
    max_factor = spec.at("max_factor").as_int();
    events = path(spec.at("events"));
    for (const Spec& null : spec.at("nulls").as_list()) nulls.push_back(null.as_string());
    if (const Spec* rule = spec.find("time")) {
        constexpr std::pair<const char*, TimeUnit> kUnits[] = {{"iso8601", TimeUnit::Iso8601},
                                                               {"s", TimeUnit::Seconds},
                                                               {"ms", TimeUnit::Milliseconds},
                                                               {"us", TimeUnit::Microseconds}};
        time.reference = part(rule->at("reference"));
        time.unit = named(rule->at("unit").as_string(), kUnits);
        if (!time.reference->single) throw Error("mapping: a time with several values");
    }
    for (const Spec& each : spec.at("rules").as_list()) {
        Rule& rule = rules.emplace_back(Rule{path(each.at("iterator")), term(each.at("subject")), {}});
        for (const Spec& statement : each.at("statements").as_list())
            rule.statements.push_back({terms(statement.at("predicates")), terms(statement.at("objects"))});
    }
}

Path Program::path(const Spec& spec) {
    Path made;
    for (const Spec& step : spec.as_list()) {
        if (step.is_null()) {
            made.push_back({Step::Kind::All});
        } else if (step.is_string()) {
            made.push_back({Step::Kind::Member, names.add(step.as_string())});
        } else {
            const Spec* from_end = step.find("from_end");
            const std::uint64_t index = from_end != nullptr ? from_end->as_int() : step.at("index").as_int();
            if (index > kMaxIndex) throw Error("mapping: an index that is too large");
            made.push_back({from_end != nullptr ? Step::Kind::FromEnd : Step::Kind::Element, index});
        }
    }
    return made;
}

Part Program::part(const Spec& spec) {
    Part made{Part::Kind::Text, {}, {}};
    if (spec.is_string()) {
        made.text = spec.as_string();
    } else if (const Spec* steps = spec.find("path")) {
        made.kind = Part::Kind::Path;
        made.path = path(*steps);
        made.single = std::none_of(made.path.begin(), made.path.end(),
                                   [](const Step& step) { return step.kind == Step::Kind::All; });
    } else if (const Spec* column = spec.find("column")) {
        made.kind = Part::Kind::Column;
        made.column = names.add(column->as_string());
    } else if (spec.find("timestamp") != nullptr) {
        made.kind = Part::Kind::Timestamp;
    } else {
        throw Error("mapping: an unknown reference");
    }
    if ((made.kind == Part::Kind::Path && format == Format::Csv) ||
        (made.kind == Part::Kind::Column && format != Format::Csv))
        throw Error("mapping: a reference of another format");
    return made;
}

std::uint32_t Program::constant(const std::string& text) {
    TermLexer lexer(*texts_.emplace_back(std::make_unique<std::string>(text)), text.size());
    try {
        TermView view{Kind::Iri, {}, {}, {}};
        if (lexer.peek() == '<') {
            view.lexical = lexer.iri();
            lexer.check(view.lexical, lexer.at());
        } else if (lexer.peek() == '"') {
            view = lexer.literal();
        } else {
            view = {Kind::Blank, lexer.blank_label(), {}, {}};
        }
        if (!lexer.done()) throw Error("mapping: a constant that is not a term");
        const auto copied = [this](std::string_view part) {
            return std::string_view(*texts_.emplace_back(std::make_unique<std::string>(part)));
        };
        constants.push_back({view.kind, copied(view.lexical), copied(view.datatype), copied(view.lang)});
    } catch (const SyntaxError& error) {
        throw Error("mapping: a constant that is not a term: " + error.reason);
    }
    return static_cast<std::uint32_t>(constants.size() - 1);
}

Term Program::term(const Spec& spec) {
    constexpr std::pair<const char*, Term::Kind> kKinds[] = {{"iri", Term::Kind::Iri},
                                                             {"uri", Term::Kind::Uri},
                                                             {"unsafe", Term::Kind::Unsafe},
                                                             {"blank", Term::Kind::Blank},
                                                             {"literal", Term::Kind::Literal}};
    Term made;
    made.kind = named(spec.at("kind").as_string(), kKinds);
    if (const Spec* text = spec.find("constant")) {
        made.constant = constant(text->as_string());
        return made;
    }
    for (const Spec& each : spec.at("parts").as_list()) made.parts.push_back(part(each));
    made.is_template = spec.at("template").as_bool();
    made.is_fresh = made.kind == Term::Kind::Blank && made.parts.empty();
    if (made.parts.empty() && !made.is_fresh && !made.is_template) throw Error("mapping: a term without parts");
    if (const Spec* datatype = spec.find("datatype")) made.datatype = std::make_unique<Term>(term(*datatype));
    if (const Spec* language = spec.find("language")) made.language = std::make_unique<Term>(term(*language));
    if (const Spec* base = spec.find("base")) made.base = base->as_string();
    made.single = std::all_of(made.parts.begin(), made.parts.end(), [](const Part& each) { return each.single; });
    if (made.is_template && (made.kind == Term::Kind::Iri || made.kind == Term::Kind::Uri) && !made.parts.empty() &&
        made.parts[0].kind == Part::Kind::Text) {
        made.has_scheme = has_scheme(made.parts[0].text);
        made.is_valid = ends_authority(made.parts[0].text);
    }
    return made;
}

std::vector<Term> Program::terms(const Spec& spec) {
    std::vector<Term> made;
    for (const Spec& each : spec.as_list()) made.push_back(term(each));
    return made;
}

}  // namespace penstock::mapping
