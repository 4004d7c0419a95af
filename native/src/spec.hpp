// A plan or expression as received from Python, in JSON's data model. bindings/spec.cpp converts dicts and lists once
// per registered template; native tests build it with the constructors.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "errors.hpp"

namespace penstock {

class Spec {
public:
    using List = std::vector<Spec>;
    using Dict = std::vector<std::pair<std::string, Spec>>;

    Spec() = default;
    Spec(bool v) : value_(v) {}
    Spec(int v) : value_(static_cast<std::uint64_t>(v)) {}
    Spec(std::uint64_t v) : value_(v) {}
    Spec(double v) : value_(v) {}
    Spec(std::string v) : value_(std::move(v)) {}
    Spec(const char* v) : value_(std::string(v)) {}
    Spec(List v) : value_(std::move(v)) {}
    Spec(Dict v) : value_(std::move(v)) {}

    bool is_null() const { return std::holds_alternative<std::monostate>(value_); }
    bool is_bool() const { return std::holds_alternative<bool>(value_); }
    bool is_int() const { return std::holds_alternative<std::uint64_t>(value_); }
    bool is_string() const { return std::holds_alternative<std::string>(value_); }
    bool is_list() const { return std::holds_alternative<List>(value_); }
    bool is_dict() const { return std::holds_alternative<Dict>(value_); }

    bool as_bool() const { return get<bool>("a boolean"); }
    std::uint64_t as_int() const { return get<std::uint64_t>("an integer"); }
    double as_double() const {
        return std::holds_alternative<double>(value_) ? std::get<double>(value_) : static_cast<double>(as_int());
    }
    const std::string& as_string() const { return get<std::string>("a string"); }
    const List& as_list() const { return get<List>("a list"); }
    const Dict& as_dict() const { return get<Dict>("a dict"); }

    /// The member `key`, or nullptr if it is absent or null.
    const Spec* find(std::string_view key) const {
        for (const auto& [name, value] : as_dict())
            if (name == key) return value.is_null() ? nullptr : &value;
        return nullptr;
    }
    const Spec& at(std::string_view key) const {
        if (const Spec* found = find(key)) return *found;
        throw Error("plan: missing member '" + std::string(key) + "'");
    }

private:
    template <class T>
    const T& get(const char* what) const {
        if (const T* v = std::get_if<T>(&value_)) return *v;
        throw Error(std::string("plan: expected ") + what);
    }
    std::variant<std::monostate, bool, std::uint64_t, double, std::string, List, Dict> value_;
};

}  // namespace penstock
