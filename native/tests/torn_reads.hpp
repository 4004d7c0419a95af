// What the tests of reads from another process, which writes meanwhile, have in common.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "dataplane/rdma.hpp"

namespace penstock::test {

/// The node's or the reader's of PENSTOCK_RDMA_DEVICES; empty is the first that can be used.
inline std::string rdma_device(bool node) {
    const char* both = std::getenv("PENSTOCK_RDMA_DEVICES");
    const std::string names = both == nullptr ? "" : both;
    return node ? names.substr(0, names.find(',')) : names.substr(names.rfind(',') + 1);
}

inline std::vector<std::byte> secret() {
    const std::string_view text = "a secret for this test only";
    const auto bytes = std::as_bytes(std::span(text));
    return {bytes.begin(), bytes.end()};
}

/// Null where there is no device.
inline std::unique_ptr<dataplane::RdmaHost> open_host() {
    if (dataplane::rdma_devices().empty()) return nullptr;
    return dataplane::open_rdma_host(rdma_device(true));
}

}  // namespace penstock::test
