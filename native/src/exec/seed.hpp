// The operator that pushes the parameters of a plan's members.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "exec/collected.hpp"
#include "exec/operator.hpp"

namespace penstock::exec {

/// The plan's parameter table.
class Seed final : public Operator {
public:
    explicit Seed(const Schema& schema) { schema_ = schema; }

    /// States that the consumer needs only these rows (ascending) in the next call of run().
    void restrict_to(std::span<const std::uint32_t> rows) {
        rows_ = rows;
        restricted_ = true;
    }

private:
    void produce(Run& run, Sink& out) override {
        if (!std::exchange(restricted_, false)) {
            push_all(run.seed, buffer_, run, out);
            return;
        }
        push_rows(run.seed, rows_, buffer_, run, out);
    }

    std::span<const std::uint32_t> rows_;
    bool restricted_ = false;
    Table buffer_;
};

}  // namespace penstock::exec
