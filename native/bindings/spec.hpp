// Conversion of Python's dicts and lists to Spec.
#pragma once

#include <nanobind/nanobind.h>

#include "../src/spec.hpp"

namespace penstock {

/// Converts JSON's data model. Integers are 0 <= n < 2^64. Raises TypeError for anything else, and for nesting beyond
/// the limits of the core.
Spec to_spec(nanobind::handle value);

}  // namespace penstock
