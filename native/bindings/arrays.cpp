// Creates and accepts arrays through numpy's C interface; the only source that calls it.
#include "arrays.hpp"

#include <numpy/arrayobject.h>

namespace nb = nanobind;

namespace penstock {

void import_numpy() {
    if (_import_array() < 0) throw nb::python_error();
}

nb::object make_array(const void* data, std::size_t size, int type, bool writable, nb::handle owner) {
    npy_intp length = static_cast<npy_intp>(size);
    const int flags = writable ? NPY_ARRAY_CARRAY : NPY_ARRAY_CARRAY_RO;
    PyObject* array = PyArray_New(&PyArray_Type, 1, &length, type, nullptr, const_cast<void*>(data), 0, flags, nullptr);
    if (array == nullptr) throw nb::python_error();
    nb::object made = nb::steal(array);
    if (PyArray_SetBaseObject(reinterpret_cast<PyArrayObject*>(array), owner.inc_ref().ptr()) < 0)
        throw nb::python_error();
    return made;
}

nb::object checked_array(nb::handle value, int type, bool convert) noexcept {
    if (!PyArray_Check(value.ptr())) return {};
    auto* const array = reinterpret_cast<PyArrayObject*>(value.ptr());
    const int own = PyArray_TYPE(array);
    if (PyArray_NDIM(array) != 1) return {};
    if (PyArray_ISCARRAY_RO(array) && (own == type || PyArray_EquivTypenums(own, type))) return nb::borrow(value);
    if (!convert || !(PyTypeNum_ISBOOL(own) || PyTypeNum_ISINTEGER(own) || PyTypeNum_ISFLOAT(own))) return {};
    PyArray_Descr* const dtype = PyArray_DescrFromType(type);  // a reference that the next call steals
    PyObject* const made = PyArray_FromArray(array, dtype, NPY_ARRAY_CARRAY_RO | NPY_ARRAY_FORCECAST);
    if (made == nullptr) PyErr_Clear();
    return nb::steal(made);
}

}  // namespace penstock
