// An allocator for tables with random access. It places large tables on large pages if the system has large pages.
// Without large pages, a look-up in a large table misses the TLB as well as the data cache.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <new>

namespace penstock {

template <class T>
struct LargePages {
    using value_type = T;

    LargePages() = default;
    template <class Other>
    LargePages(const LargePages<Other>&) {}

    T* allocate(std::size_t count) {
        const std::size_t bytes = count * sizeof(T);
        if (bytes < kLarge) return static_cast<T*>(::operator new(bytes, std::align_val_t(alignof(T))));
        void* const data = ::operator new(bytes, std::align_val_t(kPage));
        ::madvise(data, bytes, MADV_HUGEPAGE);  // a hint: if it fails, accesses are only slower
        return static_cast<T*>(data);
    }
    void deallocate(T* data, std::size_t count) {
        const std::size_t bytes = count * sizeof(T);
        ::operator delete(data, std::align_val_t(bytes < kLarge ? alignof(T) : kPage));
    }
    template <class Other>
    bool operator==(const LargePages<Other>&) const {
        return true;
    }

private:
    static constexpr std::size_t kPage = std::size_t{2} << 20;
    static constexpr std::size_t kLarge = 2 * kPage;
};

}  // namespace penstock
