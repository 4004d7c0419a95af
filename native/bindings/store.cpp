// Bindings of the stored graph: Source (base of every window too), Store, ShardReader.
#include <nanobind/nanobind.h>

#include "source.hpp"

namespace nb = nanobind;

void bind_store(nb::module_& m) {
    nb::class_<penstock::Source>(m, "Source", "What execute() reads: the stored graph at a snapshot, or a window.");
}
