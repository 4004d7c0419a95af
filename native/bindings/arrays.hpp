// Columns between numpy and the core: views in, owned vectors out, neither copied.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "rdf/term.hpp"

namespace penstock {

/// A one-dimensional numpy array as argument; strided or otherwise typed ones are converted by nanobind where safe.
template <class T>
using ColumnIn = nanobind::ndarray<const T, nanobind::ndim<1>, nanobind::c_contig, nanobind::device::cpu>;
using IdsIn = ColumnIn<TermId>;
using TimesIn = ColumnIn<std::int64_t>;

template <class T>
using ColumnOut = nanobind::ndarray<nanobind::numpy, T, nanobind::ndim<1>>;
using IdsOut = ColumnOut<TermId>;
using TimesOut = ColumnOut<std::int64_t>;

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
    return ColumnOut<T>(data, {size}, owner);
}

}  // namespace penstock
