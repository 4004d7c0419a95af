// TLS 1.3 of data-plane connections, with certificates of both sides (ADR 74).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "dataplane/socket.hpp"

struct ssl_st;
struct ssl_ctx_st;
struct bio_st;

namespace penstock::dataplane {

struct OpenSsl;

/// Files in PEM: the CA of the peers' certificates, and the certificate chain and key of this process.
struct TlsFiles {
    std::string ca, certificate, key;
};

/// The encrypted bytes of one connection on a non-blocking socket, which must outlive it. The handshake takes place
/// during the first calls of receive(). Not thread-safe.
class TlsStream {
public:
    /// A key is renewed after this number of records. RFC 8446 (§5.5) permits 2^24.5 full records.
    static constexpr std::uint64_t kRecordsPerKey = std::uint64_t{1} << 23;

    TlsStream(const OpenSsl& openssl, ssl_ctx_st* context, int socket, std::uint64_t records_per_key);
    ~TlsStream();
    TlsStream(const TlsStream&) = delete;
    TlsStream& operator=(const TlsStream&) = delete;

    void accept();
    /// `host`: the name or IP address that the node's certificate must have.
    void connect(const std::string& host);

    /// Performs the next steps of the handshake. Returns Some when the handshake is complete.
    Moved handshake();
    /// Encrypts and sends a prefix of `bytes`. A part of this prefix can remain in the stream (`has_unsent`).
    Moved send(std::span<const std::byte> bytes, std::size_t& moved);
    Moved receive(std::span<std::byte> bytes, std::size_t& moved);
    /// Sends the bytes that remain in the stream.
    Moved flush();
    bool has_unsent() const { return out_begin_ < out_.size(); }
    /// The reason why the stream has ended. Empty if it has not ended, or if the peer has closed the connection.
    const std::string& failure() const { return failure_; }

private:
    static int read_bytes(bio_st* bio, char* into, std::size_t length, std::size_t* got);
    static int write_bytes(bio_st* bio, const char* from, std::size_t length, std::size_t* taken);
    static long control(bio_st* bio, int command, long, void*);
    static void* methods(const OpenSsl& openssl);
    Moved ended(int result);
    void renew_key();

    const OpenSsl& openssl_;
    const int socket_;
    const std::uint64_t records_per_key_;
    ssl_st* ssl_;
    std::uint64_t records_ = 0;   // sent under the present key
    std::vector<std::byte> out_;  // encrypted
    std::size_t out_begin_ = 0;
    bool closed_ = false;  // by the peer
    std::string failure_;
};

/// The certificates of this process, as server and as client. If the files have changed, new connections use the new
/// certificates. While the new files are invalid, new connections use the old certificates. Thread-safe.
class TlsIdentity {
public:
    /// Error(Refused) if there is no OpenSSL; StorageError if a file cannot be used.
    explicit TlsIdentity(TlsFiles files, std::uint64_t records_per_key = TlsStream::kRecordsPerKey);
    ~TlsIdentity();
    TlsIdentity(const TlsIdentity&) = delete;
    TlsIdentity& operator=(const TlsIdentity&) = delete;

    std::unique_ptr<TlsStream> accept(const Descriptor& socket);
    std::unique_ptr<TlsStream> connect(const Descriptor& socket, const std::string& host);

private:
    using Stamp = std::array<std::int64_t, 6>;
    Stamp stamp() const;
    std::shared_ptr<ssl_ctx_st> load() const;
    std::shared_ptr<ssl_ctx_st> context();

    const OpenSsl& openssl_;
    const TlsFiles files_;
    const std::uint64_t records_per_key_;
    std::mutex mutex_;  // protects what follows
    Stamp stamp_;
    std::shared_ptr<ssl_ctx_st> context_;
};

}  // namespace penstock::dataplane
