#include "expr/native_patterns.hpp"

#include <mutex>

namespace penstock::expr {
namespace {

/// The automata of the process. An evaluation is short, so its own cache alone would compile the pattern of a standing
/// query at each instant.
class SharedAutomata {
public:
    std::shared_ptr<const AsciiAutomaton> get(const std::string& key, std::string_view pattern,
                                              std::string_view flags) {
        {
            const std::lock_guard lock(mutex_);
            const auto found = known_.find(key);
            if (found != known_.end()) return found->second;
        }
        auto made = AsciiAutomaton::compile(pattern, flags);
        const std::lock_guard lock(mutex_);
        if (known_.size() >= kMaxEntries) known_.clear();
        return known_.try_emplace(key, std::move(made)).first->second;
    }

private:
    static constexpr std::size_t kMaxEntries = 256;
    std::mutex mutex_;
    std::unordered_map<std::string, std::shared_ptr<const AsciiAutomaton>> known_;
};

SharedAutomata& shared_automata() {
    static SharedAutomata automata;
    return automata;
}

}  // namespace

const NativePattern& NativePatterns::get(std::string_view pattern, std::string_view flags) {
    const bool same = last_ != nullptr && key_.size() == flags.size() + 1 + pattern.size() &&
                      key_.compare(0, flags.size(), flags) == 0 && key_[flags.size()] == '\0' &&
                      key_.compare(flags.size() + 1, pattern.size(), pattern) == 0;
    if (same) return *last_;
    key_.assign(flags).append(1, '\0').append(pattern);
    const auto found = known_.find(key_);
    if (found != known_.end()) return *(last_ = &found->second);
    if (known_.size() >= kMaxEntries) known_.clear();
    NativePattern made{plain_pattern(pattern, flags), nullptr};
    if (!made.plain) made.automaton = shared_automata().get(key_, pattern, flags);
    return *(last_ = &known_.emplace(key_, std::move(made)).first->second);
}

}  // namespace penstock::expr
