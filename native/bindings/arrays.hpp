// Columns between numpy and the core: views in, owned vectors out, neither copied.
#pragma once

#include <nanobind/nanobind.h>

#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#include <numpy/ndarraytypes.h>

#include <cstdint>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "rdf/term.hpp"

namespace penstock {

/// A one-dimensional numpy array as argument, which lives as long as this does; arrays that are strided or of another
/// type of numbers are converted unless the argument is `noconvert`.
template <class T>
class ColumnIn {
public:
    ColumnIn() = default;
    explicit ColumnIn(nanobind::object array) : array_(std::move(array)) {
        auto* const from = reinterpret_cast<PyArrayObject*>(array_.ptr());
        elements_ = {static_cast<const T*>(PyArray_DATA(from)), static_cast<std::size_t>(PyArray_DIM(from, 0))};
    }
    const T* data() const { return elements_.data(); }
    std::size_t size() const { return elements_.size(); }

private:
    nanobind::object array_;
    std::span<const T> elements_;
};
using IdsIn = ColumnIn<TermId>;
using TimesIn = ColumnIn<std::int64_t>;

/// A numpy array as result.
template <class T>
using ColumnOut = nanobind::object;
using IdsOut = ColumnOut<TermId>;

/// numpy's number of an element's type.
constexpr int numpy_type(const std::uint8_t*) { return NPY_UINT8; }
constexpr int numpy_type(const std::int32_t*) { return NPY_INT32; }
constexpr int numpy_type(const std::uint32_t*) { return NPY_UINT32; }
constexpr int numpy_type(const std::int64_t*) { return NPY_INT64; }
constexpr int numpy_type(const std::uint64_t*) { return NPY_UINT64; }

/// To be called once, before any array is made or taken. Throws Python's ImportError.
void import_numpy();

/// The array as one of aligned elements of that type side by side: itself, or (`convert`) a copy. Nothing for what is
/// no array of one dimension, or holds no numbers (complex ones are none).
nanobind::object checked_array(nanobind::handle value, int type, bool convert) noexcept;

nanobind::object make_array(const void* data, std::size_t size, int type, bool writable, nanobind::handle owner);

/// Makes an array over memory that lives as long as `owner`; of constants it may only be read. This is numpy's own
/// call: by way of a buffer, as nanobind's arrays become numpy's, it takes three times as long, which is a third of
/// what a small query costs.
template <class T>
ColumnOut<T> array_over(T* data, std::size_t size, nanobind::handle owner) {
    return make_array(data, size, numpy_type(data), !std::is_const_v<T>, owner);
}

template <class T>
std::span<const T> view(const ColumnIn<T>& column) {
    return {column.data(), column.size()};
}

/// Gives the vector's memory to a numpy array, as elements of another type of that size where one is named.
template <class T, class As = T>
ColumnOut<As> to_numpy(std::vector<T>&& values) {
    static_assert(sizeof(T) == sizeof(As));
    auto owned = std::make_unique<std::vector<T>>(std::move(values));
    auto* data = reinterpret_cast<As*>(owned->data());
    const std::size_t size = owned->size();
    const nanobind::capsule owner(owned.get(), [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
    owned.release();
    return array_over(data, size, owner);
}

}  // namespace penstock

/// By numpy's own calls: by way of DLPack, as nanobind's arrays come in, each takes ten times as long.
template <class T>
struct nanobind::detail::type_caster<penstock::ColumnIn<T>> {
    NB_TYPE_CASTER(penstock::ColumnIn<T>, const_name("numpy.ndarray[dtype=") +
                                              const_name<std::is_signed_v<T>>("int", "uint") +
                                              const_name<8 * sizeof(T)>() + const_name("]"))

    bool from_python(handle from, std::uint32_t flags, cleanup_list*) noexcept {
        const bool convert = (flags & static_cast<std::uint32_t>(cast_flags::convert)) != 0;
        object array = penstock::checked_array(from, penstock::numpy_type(static_cast<T*>(nullptr)), convert);
        if (!array.is_valid()) return false;
        value = penstock::ColumnIn<T>(std::move(array));
        return true;
    }
};
