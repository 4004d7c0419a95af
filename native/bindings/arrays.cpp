// Arrays made by numpy's C interface; the only source that knows it.
#include "arrays.hpp"

#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#include <numpy/arrayobject.h>

namespace nb = nanobind;

namespace penstock {
namespace {

int number_of(Numpy type) {
    switch (type) {
        case Numpy::int32:
            return NPY_INT32;
        case Numpy::int64:
            return NPY_INT64;
        case Numpy::uint8:
            return NPY_UINT8;
        case Numpy::uint32:
            return NPY_UINT32;
        case Numpy::uint64:
            break;
    }
    return NPY_UINT64;
}

}  // namespace

void import_numpy() {
    if (_import_array() < 0) throw nb::python_error();
}

nb::object array_over(const void* data, std::size_t size, Numpy type, bool writable, nb::handle owner) {
    npy_intp length = static_cast<npy_intp>(size);
    const int flags = writable ? NPY_ARRAY_CARRAY : NPY_ARRAY_CARRAY_RO;
    PyObject* array =
        PyArray_New(&PyArray_Type, 1, &length, number_of(type), nullptr, const_cast<void*>(data), 0, flags, nullptr);
    if (array == nullptr) throw nb::python_error();
    nb::object made = nb::steal(array);
    if (PyArray_SetBaseObject(reinterpret_cast<PyArrayObject*>(array), owner.inc_ref().ptr()) < 0)
        throw nb::python_error();
    return made;
}

}  // namespace penstock
