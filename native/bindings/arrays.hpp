// Columns between numpy and the core: views in, owned vectors out, neither copied.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdint>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "rdf/term.hpp"

namespace penstock {

/// A one-dimensional numpy array as argument; strided or otherwise typed ones are converted by nanobind where safe.
template <class T>
using ColumnIn = nanobind::ndarray<const T, nanobind::ndim<1>, nanobind::c_contig, nanobind::device::cpu>;
using IdsIn = ColumnIn<TermId>;
using TimesIn = ColumnIn<std::int64_t>;

/// A numpy array as result.
template <class T>
using ColumnOut = nanobind::object;
using IdsOut = ColumnOut<TermId>;

enum class Numpy : std::uint8_t { int32, int64, uint8, uint32, uint64 };

template <class T>
inline constexpr Numpy numpy_type = std::is_same_v<T, std::int32_t>    ? Numpy::int32
                                    : std::is_same_v<T, std::int64_t>  ? Numpy::int64
                                    : std::is_same_v<T, std::uint8_t>  ? Numpy::uint8
                                    : std::is_same_v<T, std::uint32_t> ? Numpy::uint32
                                                                       : Numpy::uint64;

/// To be called once, before any array is made. Throws Python's ImportError.
void import_numpy();

/// Makes an array over memory that lives as long as `owner`. This is numpy's own call: by way of a buffer, as
/// nanobind's arrays become numpy's, it takes three times as long, which is a third of what a small query costs.
nanobind::object array_over(const void* data, std::size_t size, Numpy type, bool writable, nanobind::handle owner);

template <class T>
ColumnOut<T> array_over(const T* data, std::size_t size, bool writable, nanobind::handle owner) {
    static_assert(std::is_same_v<T, std::uint64_t> || numpy_type<T> != Numpy::uint64);
    return array_over(static_cast<const void*>(data), size, numpy_type<T>, writable, owner);
}

template <class T>
std::span<const T> view(const ColumnIn<T>& column) {
    return {column.data(), column.size()};
}

/// Gives the vector's memory to a numpy array.
template <class T>
ColumnOut<T> to_numpy(std::vector<T>&& values) {
    auto owned = std::make_unique<std::vector<T>>(std::move(values));
    T* data = owned->data();
    const std::size_t size = owned->size();
    const nanobind::capsule owner(owned.get(), [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
    owned.release();
    return array_over<T>(data, size, true, owner);
}

}  // namespace penstock
