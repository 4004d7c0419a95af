// Errors of the core; the bindings turn each into the Python class of the same name (libs/penstock/errors.py).
#pragma once

#include <stdexcept>

namespace penstock {

struct Error : std::runtime_error {
    using std::runtime_error::runtime_error;
};
struct DataError : Error {
    using Error::Error;
};
struct LimitError : Error {
    using Error::Error;
};
struct StorageError : Error {
    using Error::Error;
};
struct DataPlaneError : Error {
    using Error::Error;
};

}  // namespace penstock
