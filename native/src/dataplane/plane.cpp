#include "dataplane/plane.hpp"

namespace penstock::dataplane {

std::string_view name_of(Fault fault) {
    switch (fault) {
        case Fault::Disconnected:
            return "disconnected";
        case Fault::TimedOut:
            return "timed out";
        case Fault::OutOfRange:
            return "out of range";
        case Fault::Retired:
            return "retired";
        case Fault::Refused:
            return "refused";
        case Fault::Behind:
            return "behind";
    }
    return "unknown";
}

void check_shape(const Read& read) {
    if (read.offset % 8 == 0 && read.length % 8 == 0 && read.length > 0 && read.length <= kMaxReadBytes) return;
    throw Error(Fault::OutOfRange, "a read of " + std::to_string(read.length) + " bytes at " +
                                       std::to_string(read.offset) + ": reads are of whole 8-byte words, at most " +
                                       std::to_string(kMaxReadBytes) + " bytes");
}

}  // namespace penstock::dataplane
