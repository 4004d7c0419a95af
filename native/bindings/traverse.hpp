// Slots for bound types that hold a Python object. Without them the garbage collector cannot see the reference, and a
// cycle through it is never collected.
#pragma once

#include <nanobind/nanobind.h>

#include <utility>

namespace penstock {

/// `held_by(value)` gives the place of the Python object, or nullptr if there is none. The object is invalid after the
/// collector has cleared a cycle, so calls must check it.
template <class T, nanobind::object* (*held_by)(T&)>
inline PyType_Slot kTraversed[] = {
    {Py_tp_traverse, reinterpret_cast<void*>(+[](PyObject* self, visitproc visit, void* arg) -> int {
         Py_VISIT(Py_TYPE(self));
         if (!nanobind::inst_ready(self)) return 0;
         if (const nanobind::object* held = held_by(*nanobind::inst_ptr<T>(self))) Py_VISIT(held->ptr());
         return 0;
     })},
    {Py_tp_clear, reinterpret_cast<void*>(+[](PyObject* self) -> int {
         if (!nanobind::inst_ready(self)) return 0;
         if (nanobind::object* held = held_by(*nanobind::inst_ptr<T>(self))) {
             const nanobind::object cleared = std::move(*held);  // its destruction may run Python code
         }
         return 0;
     })},
    {0, nullptr},
};

}  // namespace penstock
