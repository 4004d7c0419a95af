// A short list that is stored inside its owner. An operator that runs for only a microsecond therefore touches few
// cache lines.
#pragma once

#include <array>
#include <cstddef>

#include "errors.hpp"

namespace penstock::exec {

/// At most N values; adding one more throws Error.
template <class T, std::size_t N>
class Few {
public:
    void push_back(const T& value) {
        if (size_ == N) throw Error("plan: a list of an operator is too long");
        values_[size_++] = value;
    }
    std::size_t size() const { return size_; }
    bool empty() const { return size_ == 0; }
    const T* begin() const { return values_.data(); }
    const T* end() const { return values_.data() + size_; }

private:
    std::size_t size_ = 0;
    std::array<T, N> values_{};
};

}  // namespace penstock::exec
