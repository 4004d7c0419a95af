// The private module penstock.core._native; libs/penstock/core/_native.pyi declares its interface.
#include <nanobind/nanobind.h>

#include "arrays.hpp"

namespace nb = nanobind;

void bind_terms(nb::module_& m);
void bind_keys(nb::module_& m);
void bind_answers(nb::module_& m);
void bind_store(nb::module_& m);
void bind_bulk(nb::module_& m);
void bind_stream(nb::module_& m);
void bind_exec(nb::module_& m);
void bind_remote(nb::module_& m);
void bind_dataplane(nb::module_& m);
void bind_mapping(nb::module_& m);
void bind_query(nb::module_& m);
void bind_updates(nb::module_& m);

NB_MODULE(_native, m) {
    penstock::import_numpy();
    bind_terms(m);
    bind_keys(m);
    bind_answers(m);
    bind_store(m);
    bind_bulk(m);
    bind_stream(m);
    bind_dataplane(m);
    bind_mapping(m);
    bind_query(m);
    bind_remote(m);
    bind_exec(m);
    bind_updates(m);
}
