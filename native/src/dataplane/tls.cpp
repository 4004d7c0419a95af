#include "dataplane/tls.hpp"

#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "dataplane/plane.hpp"
#include "dataplane/tls_library.hpp"
#include "errors.hpp"

namespace penstock::dataplane {

namespace {

constexpr std::size_t kRecord = std::size_t{16} << 10;
constexpr std::size_t kOverhead = 64;  // more than a record's header, tag and padding
// The bytes that one system call moves. Larger buffers cost more, because they do not fit into the processor's cache.
constexpr std::size_t kInput = std::size_t{64} << 10;
constexpr std::size_t kOutput = std::size_t{64} << 10;

// AES-128-GCM is first, because with the processor's instructions it is the fastest. Both sides use this order.
constexpr const char* kSuites = "TLS_AES_128_GCM_SHA256:TLS_CHACHA20_POLY1305_SHA256:TLS_AES_256_GCM_SHA384";

Moved moved_if(std::size_t moved, Moved otherwise) { return moved > 0 ? Moved::Some : otherwise; }

}  // namespace

// ---- one connection

TlsStream::TlsStream(const OpenSsl& openssl, ssl_ctx_st* context, int socket, std::uint64_t records_per_key)
    : openssl_(openssl), socket_(socket), records_per_key_(records_per_key), ssl_(openssl.ssl_new(context)) {
    bio_st* bio = ssl_ == nullptr ? nullptr : openssl.bio_new(static_cast<const bio_method_st*>(methods(openssl)));
    if (bio == nullptr) {
        openssl.ssl_free(ssl_);
        throw StorageError("a TLS connection could not be allocated");
    }
    openssl.bio_set_data(bio, this);
    openssl.bio_set_init(bio, 1);
    openssl.set_bio(ssl_, bio, bio);  // which owns it now
}

TlsStream::~TlsStream() { openssl_.ssl_free(ssl_); }

void* TlsStream::methods(const OpenSsl& openssl) {
    static bio_method_st* const methods = [&] {
        bio_method_st* made = openssl.meth_new(OpenSsl::kBioSourceSink, "penstock");
        if (made == nullptr) throw StorageError("OpenSSL's methods could not be allocated");
        openssl.meth_set_read(made, &TlsStream::read_bytes);
        openssl.meth_set_write(made, &TlsStream::write_bytes);
        openssl.meth_set_ctrl(made, &TlsStream::control);
        return made;
    }();
    return methods;
}

void TlsStream::accept() { openssl_.set_accept(ssl_); }

void TlsStream::connect(const std::string& host) {
    openssl_.set_connect(ssl_);
    X509_VERIFY_PARAM_st* expected = openssl_.get_param(ssl_);
    if (openssl_.param_set_ip(expected, host.c_str()) != 1) {
        openssl_.clear_errors();  // it is no IP address
        if (openssl_.param_set_host(expected, host.c_str(), 0) != 1)
            throw Error(Fault::Refused, "no certificate can name the host " + host);
    }
}

/// OpenSSL asks for as many bytes as its buffer holds, so a record needs no system call of its own.
int TlsStream::read_bytes(bio_st* bio, char* into, std::size_t length, std::size_t* got) {
    const OpenSsl& openssl = OpenSsl::load();
    auto& self = *static_cast<TlsStream*>(openssl.bio_get_data(bio));
    openssl.bio_clear_flags(bio, OpenSsl::kBioRead | OpenSsl::kBioRetry);
    const Moved how = receive_some(self.socket_, std::as_writable_bytes(std::span(into, length)), *got);
    if (how == Moved::WouldBlock) openssl.bio_set_flags(bio, OpenSsl::kBioRead | OpenSsl::kBioRetry);
    self.closed_ |= how == Moved::Ended;
    return how == Moved::Some ? 1 : 0;
}

/// Accepts all bytes, because send() limits the size of the buffer.
int TlsStream::write_bytes(bio_st* bio, const char* from, std::size_t length, std::size_t* taken) {
    auto& self = *static_cast<TlsStream*>(OpenSsl::load().bio_get_data(bio));
    const auto bytes = std::as_bytes(std::span(from, length));
    self.out_.insert(self.out_.end(), bytes.begin(), bytes.end());
    *taken = length;
    return 1;
}

long TlsStream::control(bio_st*, int command, long, void*) { return command == OpenSsl::kBioFlush ? 1 : 0; }

Moved TlsStream::flush() {
    while (has_unsent()) {
        std::size_t moved = 0;
        const Moved how = send_some(socket_, std::span<const std::byte>(out_).subspan(out_begin_), moved);
        if (how != Moved::Some) return how;
        out_begin_ += moved;
    }
    out_.clear();
    out_begin_ = 0;
    return Moved::Some;
}

/// The state after a call of OpenSSL that has moved nothing.
Moved TlsStream::ended(int result) {
    const int error = openssl_.get_error(ssl_, result);
    if (error == OpenSsl::kErrorWantRead && !closed_) {
        const Moved flushed = flush();
        return flushed == Moved::Ended ? flushed : Moved::WouldBlock;
    }
    if (failure_.empty() && error == OpenSsl::kErrorSsl && !closed_) {
        const long verified = openssl_.verify_result(ssl_);
        failure_ = openssl_.reason();
        if (verified != 0) failure_ = std::string("certificate: ") + openssl_.verify_text(verified);
    }
    openssl_.clear_errors();
    flush();  // the alert that tells the peer why
    return Moved::Ended;
}

Moved TlsStream::handshake() {
    openssl_.clear_errors();
    const int result = openssl_.handshake(ssl_);
    return result == 1 ? (flush() == Moved::Ended ? Moved::Ended : Moved::Some) : ended(result);
}

void TlsStream::renew_key() {
    if (openssl_.key_update(ssl_, OpenSsl::kUpdateNotRequested) != 1) openssl_.clear_errors();
    records_ = 0;
}

Moved TlsStream::send(std::span<const std::byte> bytes, std::size_t& moved) {
    moved = 0;
    const Moved before = flush();
    if (before != Moved::Some || bytes.empty()) return before == Moved::Some ? Moved::WouldBlock : before;
    openssl_.clear_errors();
    while (moved < bytes.size() && out_.size() + kRecord + kOverhead <= kOutput) {
        if (records_ >= records_per_key_) renew_key();
        std::size_t taken = 0;
        const auto record = bytes.subspan(moved, std::min(kRecord, bytes.size() - moved));
        const int result = openssl_.write(ssl_, record.data(), record.size(), &taken);
        if (result != 1) return moved_if(moved, ended(result));
        ++records_;
        moved += taken;
    }
    return flush() == Moved::Ended ? Moved::Ended : Moved::Some;
}

Moved TlsStream::receive(std::span<std::byte> bytes, std::size_t& moved) {
    moved = 0;
    openssl_.clear_errors();
    while (moved < bytes.size()) {
        std::size_t got = 0;
        const int result = openssl_.read(ssl_, bytes.data() + moved, bytes.size() - moved, &got);
        if (result != 1) return moved_if(moved, ended(result));
        moved += got;
    }
    return Moved::Some;
}

// ---- certificates

namespace {

/// The certificate of the peer is checked by the library; no password is ever asked for.
int no_password(char*, int, int, void*) { return 0; }

}  // namespace

TlsIdentity::TlsIdentity(TlsFiles files, std::uint64_t records_per_key)
    : openssl_(OpenSsl::load()),
      files_(std::move(files)),
      records_per_key_(records_per_key),
      stamp_(stamp()),
      context_(load()) {}

TlsIdentity::~TlsIdentity() = default;

/// Numbers that change if the certificate or key of this process changes. The file of the CA is not included, because a
/// change of the CA needs a restart.
TlsIdentity::Stamp TlsIdentity::stamp() const {
    Stamp stamp{};
    std::size_t at = 0;
    for (const std::string* path : {&files_.certificate, &files_.key}) {
        struct stat status{};
        if (::stat(path->c_str(), &status) != 0) return {};
        stamp.at(at++) = static_cast<std::int64_t>(status.st_ino);
        stamp.at(at++) = status.st_mtim.tv_sec * 1'000'000'000 + status.st_mtim.tv_nsec;
        stamp.at(at++) = status.st_size;
    }
    return stamp;
}

std::shared_ptr<ssl_ctx_st> TlsIdentity::load() const {
    const OpenSsl& ssl = openssl_;
    ssl.clear_errors();
    std::shared_ptr<ssl_ctx_st> made(ssl.ctx_new(ssl.tls_method()), ssl.ctx_free);
    const auto require = [&](bool done, const std::string& what) {
        if (!done) throw StorageError(what + ": " + ssl.reason());
    };
    require(made != nullptr, "TLS");
    ssl_ctx_st* context = made.get();
    require(ssl.ctx_ctrl(context, OpenSsl::kControlMinimumVersion, OpenSsl::kTls13, nullptr) == 1, "TLS 1.3");
    require(ssl.ctx_set_ciphersuites(context, kSuites) == 1, "TLS 1.3");
    ssl.ctx_ctrl(context, OpenSsl::kControlSessionCache, 0, nullptr);
    ssl.ctx_set_num_tickets(context, 0);
    ssl.ctx_ctrl(context, OpenSsl::kControlReadAhead, 1, nullptr);
    ssl.ctx_set_read_buffer(context, kInput);
    ssl.ctx_set_password(context, no_password);
    ssl.ctx_set_verify(context, OpenSsl::kVerifyPeer | OpenSsl::kFailIfNoPeerCertificate, nullptr);
    require(ssl.ctx_load_ca(context, files_.ca.c_str(), nullptr) == 1, files_.ca);
    require(ssl.ctx_use_certificate(context, files_.certificate.c_str()) == 1, files_.certificate);
    require(ssl.ctx_use_key(context, files_.key.c_str(), OpenSsl::kFilePem) == 1, files_.key);
    require(ssl.ctx_check_key(context) == 1, files_.key);
    return made;
}

std::shared_ptr<ssl_ctx_st> TlsIdentity::context() {
    const std::lock_guard lock(mutex_);
    const Stamp now = stamp();
    if (now == stamp_) return context_;
    try {
        context_ = load();
        stamp_ = now;
    } catch (const StorageError&) {
        // The files are being replaced. The next connection examines them again.
    }
    return context_;
}

std::unique_ptr<TlsStream> TlsIdentity::accept(const Descriptor& socket) {
    const auto context = this->context();
    auto stream = std::make_unique<TlsStream>(openssl_, context.get(), socket.get(), records_per_key_);
    stream->accept();
    return stream;
}

std::unique_ptr<TlsStream> TlsIdentity::connect(const Descriptor& socket, const std::string& host) {
    const auto context = this->context();
    auto stream = std::make_unique<TlsStream>(openssl_, context.get(), socket.get(), records_per_key_);
    stream->connect(host);
    return stream;
}

}  // namespace penstock::dataplane
