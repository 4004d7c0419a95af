// libibverbs, loaded on first use, so that a module built with RDMA also runs without the library.
#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>

namespace penstock::dataplane {

/// The library functions in use. Posting and polling go through the device's own table (ibv_post_send and ibv_poll_cq
/// are inline).
struct Verbs {
    decltype(&::ibv_get_device_list) get_device_list;
    decltype(&::ibv_free_device_list) free_device_list;
    decltype(&::ibv_get_device_name) get_device_name;
    decltype(&::ibv_open_device) open_device;
    decltype(&::ibv_close_device) close_device;
    decltype(&::ibv_query_device) query_device;
    int (*query_port)(ibv_context*, std::uint8_t, _compat_ibv_port_attr*);
    decltype(&::ibv_query_gid) query_gid;
    decltype(&::ibv_alloc_pd) alloc_pd;
    decltype(&::ibv_dealloc_pd) dealloc_pd;
    ibv_mr* (*reg_mr)(ibv_pd*, void*, std::size_t, int);
    decltype(&::ibv_dereg_mr) dereg_mr;
    decltype(&::ibv_create_cq) create_cq;
    decltype(&::ibv_destroy_cq) destroy_cq;
    decltype(&::ibv_create_qp) create_qp;
    decltype(&::ibv_modify_qp) modify_qp;
    decltype(&::ibv_destroy_qp) destroy_qp;
    decltype(&::ibv_wc_status_str) wc_status_str;

    /// Error(Refused) if the library is missing.
    static const Verbs& load();
};

}  // namespace penstock::dataplane
