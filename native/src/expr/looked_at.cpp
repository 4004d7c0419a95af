#include "expr/looked_at.hpp"

#include <algorithm>
#include <string>

#include "rdf/term.hpp"

namespace penstock::expr {
namespace {

bool is_variable(const Spec& spec) { return spec.find("var") != nullptr; }

bool is_iri(const Spec& spec) {
    const Spec* id = spec.find("id");
    return id != nullptr && tag_of(id->as_int()) == Tag::Iri;
}

/// Whether a call's variables are read as ids (BoundNode, KindNode, SameTermNode, CompareNode).
bool by_ids(const std::string& name, const std::vector<Spec>& arguments) {
    if (name == "bound" || name == "isiri" || name == "isblank" || name == "isliteral") return true;
    if (arguments.size() != 2) return false;
    const Spec &a = arguments[0], &b = arguments[1];
    if (name == "sameterm") return (is_variable(a) || is_iri(a)) && (is_variable(b) || is_iri(b));
    if (name == "=" || name == "!=") return (is_variable(a) && is_iri(b)) || (is_iri(a) && is_variable(b));
    return false;
}

void collect(const Spec& spec, std::vector<Slot>& out) {
    if (const Spec* slot = spec.find("var")) {
        out.push_back(static_cast<Slot>(slot->as_int()));
        return;
    }
    const Spec* arguments = spec.find("args");
    if (arguments == nullptr) return;
    const Spec* name = spec.find("call");
    const bool ids = name != nullptr && by_ids(name->as_string(), arguments->as_list());
    for (const Spec& argument : arguments->as_list())
        if (!ids || !is_variable(argument)) collect(argument, out);
}

}  // namespace

std::vector<Slot> looked_at(const Spec& expression) {
    std::vector<Slot> out;
    collect(expression, out);
    std::sort(out.begin(), out.end());
    out.erase(std::unique(out.begin(), out.end()), out.end());
    return out;
}

}  // namespace penstock::expr
