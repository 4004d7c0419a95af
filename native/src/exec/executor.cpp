#include "exec/executor.hpp"

#include <atomic>
#include <mutex>

#include "exec/program.hpp"

namespace penstock {

/// Operators reuse their buffers from run to run, so a small evaluation allocates almost nothing. A program serves one
/// run at a time. There are as many programs as the maximum of concurrent runs so far, up to a limit.
struct Plan::Impl {
    static constexpr std::size_t kIdle = 16;

    explicit Impl(const Spec& given) : spec(given), slots(spec.at("slots").as_int()) {
        for (const Spec& slot : spec.at("seed").as_list()) seed.push_back(static_cast<Slot>(slot.as_int()));
        idle.push_back(std::make_unique<exec::Program>(spec));  // validates the whole plan
    }

    ~Impl() { delete latest.load(); }

    std::unique_ptr<exec::Program> take() {
        // Acquire: makes the state visible that the previous run left in the program.
        if (exec::Program* program = latest.exchange(nullptr, std::memory_order_acquire))
            return std::unique_ptr<exec::Program>(program);
        {
            std::lock_guard lock(mutex);
            if (!idle.empty()) {
                auto program = std::move(idle.back());
                idle.pop_back();
                return program;
            }
        }
        return std::make_unique<exec::Program>(spec);
    }
    void give_back(std::unique_ptr<exec::Program> program) {
        exec::Program* none = nullptr;
        // Release: the next run that acquires the program sees the state that this run left in it.
        if (latest.compare_exchange_strong(none, program.get(), std::memory_order_release, std::memory_order_relaxed)) {
            program.release();
            return;
        }
        std::lock_guard lock(mutex);
        if (idle.size() < kIdle) idle.push_back(std::move(program));
    }

    const Spec spec;
    const std::size_t slots;
    std::vector<Slot> seed;
    // Owning. A single thread always gets this program, without a lock.
    std::atomic<exec::Program*> latest = nullptr;
    std::mutex mutex;
    std::vector<std::unique_ptr<exec::Program>> idle;
};

Plan::Plan(const Spec& spec) : impl_(std::make_unique<Impl>(spec)) {}
Plan::~Plan() = default;

std::size_t Plan::slots() const { return impl_->slots; }
const std::vector<Slot>& Plan::seed() const { return impl_->seed; }

Answer Plan::run(const RunInput& input) const {
    auto program = impl_->take();
    Answer answer = program->run(input);  // if it throws, the program is discarded with the state of its operators
    impl_->give_back(std::move(program));
    return answer;
}

}  // namespace penstock
