// Columns between numpy and the core: views in, owned vectors out, both without a copy.
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

/// A one-dimensional numpy array as argument, valid for the lifetime of this object. Arrays with strides or another
/// numeric type are converted unless the argument is `noconvert`.
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

/// numpy's type number for an element type.
constexpr int numpy_type(const std::uint8_t*) { return NPY_UINT8; }
constexpr int numpy_type(const std::int32_t*) { return NPY_INT32; }
constexpr int numpy_type(const std::uint32_t*) { return NPY_UINT32; }
constexpr int numpy_type(const std::int64_t*) { return NPY_INT64; }
constexpr int numpy_type(const std::uint64_t*) { return NPY_UINT64; }

/// Must be called once, before any array is created or accepted. Throws Python's ImportError.
void import_numpy();

/// The array as a contiguous one of aligned elements of that type: itself, or (`convert`) a copy. Null for a value that
/// is not a one-dimensional array of real numbers.
nanobind::object checked_array(nanobind::handle value, int type, bool convert) noexcept;

nanobind::object make_array(const void* data, std::size_t size, int type, bool writable, nanobind::handle owner);

/// Creates an array over memory that lives as long as `owner`; read-only if the memory is const. Calls numpy directly.
/// Conversion through a buffer, as nanobind's arrays do, takes three times as long: a third of a small query's time.
template <class T>
ColumnOut<T> array_over(T* data, std::size_t size, nanobind::handle owner) {
    return make_array(data, size, numpy_type(data), !std::is_const_v<T>, owner);
}

template <class T>
std::span<const T> view(const ColumnIn<T>& column) {
    return {column.data(), column.size()};
}

/// Moves the vector's memory into a numpy array, optionally as elements of another type of the same size.
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

/// Calls numpy directly: conversion through DLPack, as for nanobind's arrays, takes ten times as long per array.
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
