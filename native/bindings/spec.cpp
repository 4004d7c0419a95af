#include "spec.hpp"

#include <string>
#include <utility>

namespace nb = nanobind;

namespace penstock {

namespace {

constexpr int kMaxDepth = 10000;  // the compiler limits nodes to less; expressions may nest somewhat deeper

std::string to_text(nb::handle value) {
    Py_ssize_t size = 0;
    const char* text = PyUnicode_AsUTF8AndSize(value.ptr(), &size);
    if (text == nullptr) throw nb::python_error();
    return {text, static_cast<std::size_t>(size)};
}

Spec convert(nb::handle value, int depth) {
    if (depth > kMaxDepth) throw nb::type_error("plan: nested too deeply");
    if (value.is_none()) return {};
    if (nb::isinstance<nb::bool_>(value)) return Spec(nb::cast<bool>(value));
    if (nb::isinstance<nb::int_>(value)) {
        unsigned long long number = PyLong_AsUnsignedLongLong(value.ptr());
        if (PyErr_Occurred() != nullptr) throw nb::python_error();
        return Spec(static_cast<std::uint64_t>(number));
    }
    if (nb::isinstance<nb::float_>(value)) return Spec(nb::cast<double>(value));
    if (nb::isinstance<nb::str>(value)) return Spec(to_text(value));
    if (nb::isinstance<nb::dict>(value)) {
        Spec::Dict members;
        for (auto [name, member] : nb::borrow<nb::dict>(value))
            members.emplace_back(to_text(name), convert(member, depth + 1));
        return Spec(std::move(members));
    }
    if (nb::isinstance<nb::list>(value) || nb::isinstance<nb::tuple>(value)) {
        Spec::List items;
        items.reserve(nb::len(value));
        for (nb::handle item : value) items.push_back(convert(item, depth + 1));
        return Spec(std::move(items));
    }
    if (PyIndex_Check(value.ptr()) != 0)
        return convert(nb::steal(PyNumber_Index(value.ptr())), depth);  // numpy integers
    std::string type = nb::cast<std::string>(nb::str(value.type()));
    throw nb::type_error(("plan: cannot use a value of " + type).c_str());
}

}  // namespace

Spec to_spec(nb::handle value) { return convert(value, 0); }

}  // namespace penstock
