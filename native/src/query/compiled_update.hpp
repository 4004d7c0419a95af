// Compiled updates: prepared updates with their generic plans (docs/adr/0088-prepared-texts.md). The core evaluates a
// compiled update from the constants of a text, without Python objects in between.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "exec/executor.hpp"
#include "query/normalized_text.hpp"
#include "query/quad_templates.hpp"
#include "rdf/dictionary.hpp"
#include "store/labels.hpp"

namespace penstock::query {

/// A term of an update: `lexical`, followed by a constant of the text without its delimiters.
struct UpdateTerm {
    std::optional<std::size_t> constant;  // its number in the text; nothing: the term is the same in all texts
    Kind kind = Kind::Iri;
    std::string lexical, datatype, lang;
};

/// How many neighbours a term had when the plan was chosen.
struct ExpectedDegree {
    std::size_t term = 0;
    TermId graph = 0, predicate = 0;
    Dir direction = Dir::Out;
    std::uint64_t neighbours = 0;
};

/// The parts of an update. Terms are named by their index in `terms`.
struct UpdateParts {
    std::vector<std::pair<std::size_t, std::string>> fixed;  // constants that texts of this update share, by number
    std::vector<UpdateTerm> terms;
    std::vector<std::size_t> seed;  // the parameters of the plan
    std::vector<std::size_t> template_constants;
    std::vector<Place> removed, added;  // templates
    std::vector<Slot> columns;          // of the plan's answer, as the templates name them
    std::vector<ExpectedDegree> degrees;
    std::vector<std::pair<std::size_t, TermId>> expected;  // terms with the ids that the plan contains
};

/// The quads that an update removes, and the quads that it adds afterwards.
struct QuadChange {
    QuadRows removed, added;
};

/// What one evaluation reads.
struct UpdateInput {
    const Source& view;
    const LabelTable& labels;
    Dictionary& dictionary;  // with a lease that was created before the view
    ExprContext& expressions;
};

class CompiledUpdate {
public:
    /// `plan` must outlive the object. Throws std::out_of_range if a part names a term that does not exist.
    CompiledUpdate(const Plan& plan, UpdateParts parts);

    /// Whether a text with these constants is a text of this update.
    bool is_of(std::span<const std::string_view> constants) const;
    bool has_same_texts(const CompiledUpdate& other) const { return parts_.fixed == other.parts_.fixed; }
    /// Evaluates the update of a text. No result if a constant has many more, or many fewer, neighbours than the plan
    /// expects, or if a term has another id now. Throws LimitError.
    std::optional<QuadChange> evaluate(std::span<const std::string_view> constants, const UpdateInput& input) const;

private:
    std::vector<TermId> intern(std::span<const std::string_view> constants, Dictionary& dictionary) const;
    bool serves(std::span<const TermId> terms, const UpdateInput& input) const;

    const Plan& plan_;
    UpdateParts parts_;
};

/// The factor by which degrees may differ, so that two constants still share a plan, and the degree below which the
/// plan does not matter.
inline constexpr std::uint64_t kDegreeFactor = 4, kLeastDegree = 64;

}  // namespace penstock::query
