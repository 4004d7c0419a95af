#ifdef PENSTOCK_RDMA

#include "dataplane/rdma_verbs.hpp"

#include <dlfcn.h>

#include <cstdint>
#include <string>

#include "dataplane/plane.hpp"

namespace penstock::dataplane {

namespace {

template <class Function>
void find(void* library, const char* name, Function& function) {
    function = reinterpret_cast<Function>(::dlsym(library, name));
    if (function == nullptr) throw Error(Fault::Refused, std::string("no RDMA: libibverbs has no ") + name);
}

Verbs load_all() {
    void* library = ::dlopen("libibverbs.so.1", RTLD_NOW | RTLD_LOCAL);  // never unloaded
    if (library == nullptr) throw Error(Fault::Refused, "no RDMA: libibverbs.so.1 is not installed");
    Verbs verbs{};
    find(library, "ibv_get_device_list", verbs.get_device_list);
    find(library, "ibv_free_device_list", verbs.free_device_list);
    find(library, "ibv_get_device_name", verbs.get_device_name);
    find(library, "ibv_open_device", verbs.open_device);
    find(library, "ibv_close_device", verbs.close_device);
    find(library, "ibv_query_device", verbs.query_device);
    find(library, "ibv_query_port", verbs.query_port);
    find(library, "ibv_query_gid", verbs.query_gid);
    find(library, "ibv_alloc_pd", verbs.alloc_pd);
    find(library, "ibv_dealloc_pd", verbs.dealloc_pd);
    find(library, "ibv_reg_mr", verbs.reg_mr);
    find(library, "ibv_dereg_mr", verbs.dereg_mr);
    find(library, "ibv_create_cq", verbs.create_cq);
    find(library, "ibv_destroy_cq", verbs.destroy_cq);
    find(library, "ibv_create_qp", verbs.create_qp);
    find(library, "ibv_modify_qp", verbs.modify_qp);
    find(library, "ibv_destroy_qp", verbs.destroy_qp);
    find(library, "ibv_wc_status_str", verbs.wc_status_str);
    return verbs;
}

}  // namespace

const Verbs& Verbs::load() {
    static const Verbs verbs = load_all();  // retried after a failure
    return verbs;
}

}  // namespace penstock::dataplane

#endif
