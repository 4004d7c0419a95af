#include <array>
#include <unordered_map>

#include "expr/functions.hpp"
#include "expr/node.hpp"

namespace penstock::expr {
namespace {

using Registry = std::unordered_map<std::string_view, FunctionEntry>;

const Registry& registry() {
    static const Registry functions = [] {
        Registry out;
        for (const auto part : {term_functions(), string_functions(), pattern_functions(), number_functions(),
                                time_functions(), stream_functions(), cast_functions()})
            for (const FunctionEntry& entry : part) out.emplace(entry.name, entry);
        return out;
    }();
    return functions;
}

/// A function of values: computes its arguments' columns, then each row. An error in an argument is the result.
class CallNode final : public Node {
public:
    CallNode(Function run, std::vector<NodePtr> arguments, CallOptions options)
        : run_(run), arguments_(std::move(arguments)), options_(std::move(options)) {}

    void evaluate(Frame& frame, Rows rows, Value* out) const override {
        const std::size_t width = arguments_.size();
        std::vector<std::unique_ptr<Operand>> operands;
        std::vector<Value> values(width);
        operands.reserve(width);
        for (std::size_t i = 0; i < width; ++i) {
            operands.push_back(std::make_unique<Operand>(frame, *arguments_[i], rows));
            if (operands[i]->constant()) values[i] = (*operands[i])[0];
        }
        Call call{frame, options_};
        for (std::size_t k = 0; k < rows.size(); ++k) {
            bool error = false;
            for (std::size_t i = 0; i < width; ++i) {
                if (!operands[i]->constant()) values[i] = (*operands[i])[k];
                error = error || values[i].error();
            }
            call.row = rows[k];
            out[k] = error ? Value{} : run_(call, values);
        }
    }

private:
    Function run_;
    std::vector<NodePtr> arguments_;
    CallOptions options_;
};

}  // namespace

NodePtr make_call(const std::string& name, std::vector<NodePtr> arguments, const Spec& spec) {
    const auto found = registry().find(name);
    if (found == registry().end()) throw Error("plan: unknown function '" + name + "'");
    const FunctionEntry& entry = found->second;
    if (arguments.size() < entry.least || arguments.size() > entry.most)
        throw Error("plan: '" + name + "' does not take " + std::to_string(arguments.size()) + " arguments");
    CallOptions options;
    if (const Spec* base = spec.find("base")) options.base = base->as_string();
    if (const Spec* window = spec.find("window")) options.window = window->as_int();
    return std::make_unique<CallNode>(entry.run, std::move(arguments), std::move(options));
}

}  // namespace penstock::expr
