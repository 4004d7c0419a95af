#include "expr/steady.hpp"

#include <algorithm>
#include <functional>
#include <set>
#include <string>

namespace penstock::expr {

bool is_steady(const Spec& expression) {
    static const std::set<std::string, std::less<>> unsteady = {
        "now", "rand", "uuid", "struuid", "bnode", "timestamp", "window_end", "window_start", "evaluation_time"};
    if (expression.find("exists") != nullptr) return false;
    const Spec* name = expression.find("call");
    if (name != nullptr && unsteady.contains(name->as_string())) return false;
    const Spec* arguments = expression.find("args");
    return arguments == nullptr || std::ranges::all_of(arguments->as_list(), is_steady);
}

}  // namespace penstock::expr
