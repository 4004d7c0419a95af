#include <algorithm>

#include "exec/path.hpp"

namespace penstock::exec {

namespace {

constexpr std::size_t kMaxPathDepth = 500;

std::unique_ptr<std::vector<TermId>> id_list(const Spec* spec) {
    if (spec == nullptr) return nullptr;
    auto ids = std::make_unique<std::vector<TermId>>();
    for (const Spec& id : spec->as_list()) ids->push_back(id.as_int());
    std::sort(ids->begin(), ids->end());
    return ids;
}

}  // namespace

PathExpression::PathExpression(const Spec& spec, std::size_t depth) : kind(Kind::Link) {
    if (depth > kMaxPathDepth) throw Error("plan: a property path is nested too deeply");
    auto list = [&](Kind list_kind, const Spec& items) {
        kind = list_kind;
        for (const Spec& item : items.as_list()) parts.emplace_back(item, depth + 1);
        if (parts.empty()) throw Error("plan: an empty sequence or alternative in a path");
    };
    auto one = [&](Kind one_kind, const Spec& item) {
        kind = one_kind;
        parts.emplace_back(item, depth + 1);
    };
    bool is_negated = false;
    for (const auto& [name, value] : spec.as_dict()) is_negated = is_negated || name == "nps";
    if (is_negated) {
        kind = Kind::Negated;
        forward = id_list(spec.find("nps"));
        inverse = id_list(spec.find("inv"));
    } else if (const Spec* link = spec.find("link")) {
        predicate = link->as_int();
        if (predicate == kUnbound) throw Error("plan: a path's predicate has id 0");
    } else if (const Spec* inv = spec.find("inv")) {
        one(Kind::Inverse, *inv);
    } else if (const Spec* seq = spec.find("seq")) {
        list(Kind::Sequence, *seq);
    } else if (const Spec* alt = spec.find("alt")) {
        list(Kind::Alternative, *alt);
    } else if (const Spec* star = spec.find("star")) {
        one(Kind::Star, *star);
    } else if (const Spec* plus = spec.find("plus")) {
        one(Kind::Plus, *plus);
    } else {
        one(Kind::Optional, spec.at("opt"));
    }
}

bool PathExpression::nullable() const {
    auto null = [](const PathExpression& part) { return part.nullable(); };
    switch (kind) {
        case Kind::Star:
        case Kind::Optional:
            return true;
        case Kind::Sequence:
            return std::all_of(parts.begin(), parts.end(), null);
        case Kind::Inverse:
        case Kind::Plus:
        case Kind::Alternative:
            return std::any_of(parts.begin(), parts.end(), null);
        default:
            return false;
    }
}

}  // namespace penstock::exec
