// libFuzzer target for what a node's server makes of an engine's bytes (dataplane/session.hpp).
//   native/build.sh fuzz 600
// The first byte selects a valid handshake before the bytes (bit 0) and the size of the pieces (the other bits).
// Whatever comes: the answers are whole frames, a Data frame has the region's own words, and after a Failure other than
// Retired no more data follows.
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "dataplane/session.hpp"

namespace {

using namespace penstock::dataplane;  // NOLINT(google-build-using-namespace)
using wire::FrameHeader;
using wire::Message;

constexpr std::uint64_t kWords = 8192;
constexpr std::uint64_t kMark = 0x5045ull << 48;  // every word of the region: this, and its index

void demand(bool holds) {
    if (!holds) std::abort();
}

/// Region 0 can be read, region 1 is withdrawn, and there never was another.
const ServedRegions& regions() {
    static const ServedRegions* made = [] {
        std::string path = "/tmp/penstock-fuzz-XXXXXX";
        const int file = ::mkstemp(path.data());
        std::vector<std::uint64_t> words(kWords);
        for (std::uint64_t i = 0; i < kWords; ++i) words[i] = kMark | i;
        demand(::write(file, words.data(), 8 * kWords) == static_cast<ssize_t>(8 * kWords));
        auto* regions = new ServedRegions;
        RegionEntry entry;
        entry.path = path;
        regions->publish(entry);
        regions->withdraw(regions->publish(entry));
        ::close(file);
        ::unlink(path.c_str());
        return regions;
    }();
    return *made;
}

const NodeIdentity& node() {
    static const NodeIdentity identity{std::vector<std::byte>(32, std::byte{7}), 11, {}};
    return identity;
}

class Engine {
public:
    void send(std::span<const std::byte> bytes, std::size_t piece) {
        while (!bytes.empty()) {
            const auto space = session_.space();
            const std::size_t n = std::min({bytes.size(), piece, space.size()});
            if (n == 0) {
                demand(session_.over());
                return;
            }
            std::copy_n(bytes.begin(), n, space.begin());
            session_.received(n);
            bytes = bytes.subspan(n);
            receive();
        }
    }

    void greet() {
        const wire::Greeting hello{wire::kMagic, wire::kVersion, 0, {}};
        send(wire::frame(Message::Hello, hello), 1000);
        const auto challenge = wire::value_at<wire::Greeting>(last_);
        send(wire::frame(Message::Proof, wire::proof(node().secret, wire::Side::Engine, {}, challenge.nonce)), 1000);
        greeted_ = session_.authenticated();
        demand(greeted_);
    }

private:
    void receive() {
        for (auto output = session_.output(); !output.empty(); output = session_.output()) {
            demand(!cut_);
            answers_.insert(answers_.end(), output.begin(), output.end());
            session_.sent(output.size());
            take_frames();
        }
        demand(!cut_ || session_.over());
    }

    void take_frames() {
        std::size_t begin = 0;
        while (answers_.size() - begin >= sizeof(FrameHeader)) {
            const auto header = wire::value_at<FrameHeader>(answers_, begin);
            if (answers_.size() - begin - sizeof header < header.body_bytes) break;
            begin += sizeof header;
            last_.assign(answers_.begin() + static_cast<std::ptrdiff_t>(begin),
                         answers_.begin() + static_cast<std::ptrdiff_t>(begin + header.body_bytes));
            begin += header.body_bytes;
            check(header.message);
        }
        answers_.erase(answers_.begin(), answers_.begin() + static_cast<std::ptrdiff_t>(begin));
    }

    void check(Message message) {
        if (message == Message::Failure) {
            cut_ = wire::read_failure(last_).fault != Fault::Retired;
        } else if (message == Message::Data) {
            demand(greeted_ && last_.size() % 8 == 0);
            for (std::size_t at = 0; at < last_.size(); at += 8) {
                const auto word = wire::value_at<std::uint64_t>(last_, at);
                demand((word & ~0xFFFFull) == kMark && (word & 0xFFFF) < kWords);
            }
        } else if (message == Message::Regions) {
            demand(greeted_ && wire::read_regions(last_).size() == 1);
        } else {
            demand(message == Message::Challenge || message == Message::Welcome || message == Message::Keys);
        }
    }

    Session session_{regions(), node()};
    std::vector<std::byte> answers_, last_;
    bool greeted_ = false, cut_ = false;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size == 0) return 0;
    Engine engine;
    if ((data[0] & 1) != 0) engine.greet();
    engine.send(std::as_bytes(std::span(data + 1, size - 1)), 1 + std::size_t{data[0]} / 2 * 7);
    return 0;
}
