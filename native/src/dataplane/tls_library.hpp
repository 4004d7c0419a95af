// OpenSSL, loaded when certificates are first used. Its stable C interface (1.1.1 and 3.x) is declared here, so that
// neither the build nor a process without TLS needs it (ADR 74).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

// The library's own names of its opaque types.
struct ssl_st;
struct ssl_ctx_st;
struct ssl_method_st;
struct bio_st;
struct bio_method_st;
struct x509_store_ctx_st;
struct X509_VERIFY_PARAM_st;

namespace penstock::dataplane {

struct OpenSsl {
    /// Error(Refused) with the reason if there is no library.
    static const OpenSsl& load();

    // Values of the library's headers.
    static constexpr int kFilePem = 1;
    static constexpr int kVerifyPeer = 0x01, kFailIfNoPeerCertificate = 0x02;
    static constexpr int kControlMinimumVersion = 123, kControlSessionCache = 44, kControlReadAhead = 41;
    static constexpr long kTls13 = 0x0304;
    static constexpr int kErrorSsl = 1, kErrorWantRead = 2;
    static constexpr int kBioFlush = 11;
    static constexpr int kBioSourceSink = 0x0400;
    static constexpr int kBioRead = 0x01, kBioRetry = 0x08;
    static constexpr int kUpdateNotRequested = 0;

    using VerifyCallback = int (*)(int, x509_store_ctx_st*);
    using PasswordCallback = int (*)(char*, int, int, void*);
    using BioWrite = int (*)(bio_st*, const char*, std::size_t, std::size_t*);
    using BioRead = int (*)(bio_st*, char*, std::size_t, std::size_t*);
    using BioControl = long (*)(bio_st*, int, long, void*);

    const ssl_method_st* (*tls_method)();
    ssl_ctx_st* (*ctx_new)(const ssl_method_st*);
    void (*ctx_free)(ssl_ctx_st*);
    long (*ctx_ctrl)(ssl_ctx_st*, int, long, void*);
    int (*ctx_set_ciphersuites)(ssl_ctx_st*, const char*);
    int (*ctx_set_num_tickets)(ssl_ctx_st*, std::size_t);
    void (*ctx_set_read_buffer)(ssl_ctx_st*, std::size_t);
    void (*ctx_set_verify)(ssl_ctx_st*, int, VerifyCallback);
    void (*ctx_set_password)(ssl_ctx_st*, PasswordCallback);
    int (*ctx_load_ca)(ssl_ctx_st*, const char*, const char*);
    int (*ctx_use_certificate)(ssl_ctx_st*, const char*);
    int (*ctx_use_key)(ssl_ctx_st*, const char*, int);
    int (*ctx_check_key)(const ssl_ctx_st*);

    ssl_st* (*ssl_new)(ssl_ctx_st*);
    void (*ssl_free)(ssl_st*);
    void (*set_bio)(ssl_st*, bio_st*, bio_st*);
    void (*set_accept)(ssl_st*);
    void (*set_connect)(ssl_st*);
    X509_VERIFY_PARAM_st* (*get_param)(ssl_st*);
    int (*param_set_host)(X509_VERIFY_PARAM_st*, const char*, std::size_t);
    int (*param_set_ip)(X509_VERIFY_PARAM_st*, const char*);
    int (*handshake)(ssl_st*);
    int (*read)(ssl_st*, void*, std::size_t, std::size_t*);
    int (*write)(ssl_st*, const void*, std::size_t, std::size_t*);
    int (*get_error)(const ssl_st*, int);
    int (*key_update)(ssl_st*, int);
    long (*verify_result)(const ssl_st*);
    const char* (*verify_text)(long);

    bio_method_st* (*meth_new)(int, const char*);
    int (*meth_set_write)(bio_method_st*, BioWrite);
    int (*meth_set_read)(bio_method_st*, BioRead);
    int (*meth_set_ctrl)(bio_method_st*, BioControl);
    bio_st* (*bio_new)(const bio_method_st*);
    void (*bio_set_data)(bio_st*, void*);
    void* (*bio_get_data)(bio_st*);
    void (*bio_set_init)(bio_st*, int);
    void (*bio_set_flags)(bio_st*, int);
    void (*bio_clear_flags)(bio_st*, int);

    unsigned long (*next_error)();
    void (*clear_errors)();
    const char* (*error_text)(unsigned long);

    /// The reason of the first queued error of this thread; the queue is empty afterwards.
    std::string reason() const;
};

}  // namespace penstock::dataplane
