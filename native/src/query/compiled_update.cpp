#include "query/compiled_update.hpp"

#include <algorithm>
#include <memory>
#include <new>
#include <stdexcept>

#include "errors.hpp"

namespace penstock::query {
namespace {

/// A constant as it is written, without the delimiters of IRIs and strings.
std::string_view without_delimiters(std::string_view written) {
    const char first = written.front();
    return first == '<' || first == '"' || first == '\'' ? written.substr(1, written.size() - 2) : written;
}

void check_terms(std::span<const std::size_t> indexes, std::size_t terms) {
    if (std::ranges::any_of(indexes, [&](std::size_t index) { return index >= terms; }))
        throw std::out_of_range("an update names no term");
}

}  // namespace

CompiledUpdate::CompiledUpdate(const Plan& plan, UpdateParts parts) : plan_(plan), parts_(std::move(parts)) {
    check_terms(parts_.seed, parts_.terms.size());
    check_terms(parts_.template_constants, parts_.terms.size());
    for (const auto& [term, id] : parts_.expected) check_terms({&term, 1}, parts_.terms.size());
    for (const ExpectedDegree& degree : parts_.degrees) check_terms({&degree.term, 1}, parts_.terms.size());
    if (plan_.seed().size() != parts_.seed.size() + 1)
        throw std::out_of_range("an update has a term for each of its plan's seed slots but the first");
}

bool CompiledUpdate::is_of(std::span<const std::string_view> constants) const {
    return std::ranges::all_of(parts_.fixed, [&](const auto& fixed) {
        return fixed.first < constants.size() && constants[fixed.first] == fixed.second;
    });
}

std::vector<TermId> CompiledUpdate::intern(std::span<const std::string_view> constants, Dictionary& dictionary) const {
    std::vector<std::string> joined;  // namespaces with local names
    joined.reserve(parts_.terms.size());
    std::vector<TermView> distinct;
    std::vector<std::size_t> places;  // of each term in `distinct`
    distinct.reserve(parts_.terms.size());
    places.reserve(parts_.terms.size());
    for (const UpdateTerm& term : parts_.terms) {
        TermView view{term.kind, term.lexical, term.datatype, term.lang};
        if (term.constant) {
            view.lexical = without_delimiters(constants[*term.constant]);
            if (!term.lexical.empty()) view.lexical = joined.emplace_back(term.lexical).append(view.lexical);
        }
        // A subject often occurs repeatedly.
        const auto same = std::ranges::find_if(distinct, [&](const TermView& other) {
            return other.kind == view.kind && other.lexical == view.lexical && other.datatype == view.datatype &&
                   other.lang == view.lang;
        });
        places.push_back(static_cast<std::size_t>(same - distinct.begin()));
        if (same == distinct.end()) distinct.push_back(view);
    }
    std::vector<TermId> ids(distinct.size()), terms;
    dictionary.intern(distinct, ids.data());
    terms.reserve(places.size());
    for (const std::size_t place : places) terms.push_back(ids[place]);
    return terms;
}

bool CompiledUpdate::serves(std::span<const TermId> terms, const UpdateInput& input) const {
    if (std::ranges::any_of(parts_.expected, [&](const auto& term) { return terms[term.first] != term.second; }))
        return false;
    return std::ranges::all_of(parts_.degrees, [&](const ExpectedDegree& expected) {
        const Label label = input.labels.find(expected.graph, expected.predicate);
        const std::uint64_t found = label == 0 ? 0 : input.view.degree(terms[expected.term], label, expected.direction);
        return found <= std::max(expected.neighbours, kLeastDegree) * kDegreeFactor &&
               expected.neighbours <= std::max(found, kLeastDegree) * kDegreeFactor;
    });
}

std::optional<QuadChange> CompiledUpdate::evaluate(std::span<const std::string_view> constants,
                                                   const UpdateInput& input) const {
    const std::vector<TermId> terms = intern(constants, input.dictionary);
    if (!serves(terms, input)) return std::nullopt;
    Table seed;
    seed.rows = 1;
    seed.slots = plan_.seed();
    seed.columns.push_back({0});  // the number of the member
    for (const std::size_t term : parts_.seed) seed.columns.push_back({terms[term]});
    const Source* const sources[] = {&input.view};
    RunInput run;
    run.seed = &seed;
    run.sources = sources;
    run.labels = &input.labels;
    run.expressions = &input.expressions;
    Answer answer;
    try {
        answer = plan_.run(run);
    } catch (const std::bad_alloc&) {
        throw LimitError("the query ran out of memory");
    }
    if (answer->rows == 0) return QuadChange{};
    std::vector<Column> replaced;  // columns with ids that were local to the run
    replaced.reserve(parts_.columns.size());
    std::vector<std::span<const TermId>> columns;
    for (const Slot slot : parts_.columns) {
        const Column* column = answer->find(slot);
        if (column == nullptr) throw std::out_of_range("the answer has no such slot");
        columns.push_back(input.expressions.terms.published(*column, input.dictionary, replaced.emplace_back()));
    }
    std::vector<TermId> template_constants;
    for (const std::size_t term : parts_.template_constants) template_constants.push_back(terms[term]);
    const Solutions solutions{template_constants, columns, answer->rows};
    return QuadChange{instances(parts_.removed, solutions, 0), instances(parts_.added, solutions, 0)};
}

}  // namespace penstock::query
