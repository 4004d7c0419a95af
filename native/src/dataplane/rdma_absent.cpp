// The functions of rdma.hpp for a core built without libibverbs' headers.
#include "dataplane/rdma.hpp"
#include "dataplane/tcp_plane.hpp"

#ifndef PENSTOCK_RDMA

namespace penstock::dataplane {

namespace {
[[noreturn]] void refuse() { throw Error(Fault::Refused, "no RDMA: built without libibverbs' headers"); }
}  // namespace

bool built_with_rdma() { return false; }
std::vector<std::string> rdma_devices() { return {}; }
std::unique_ptr<RdmaHost> open_rdma_host(const std::string&) { refuse(); }
std::unique_ptr<Plane> make_rdma_plane(std::unique_ptr<TcpPlane>, const std::string&) { refuse(); }

}  // namespace penstock::dataplane

#endif
