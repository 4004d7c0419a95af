#include "dataplane/tls_library.hpp"

#include <dlfcn.h>

#include <array>

#include "dataplane/plane.hpp"

namespace penstock::dataplane {

namespace {

struct Library {
    void* handle;
    template <class Function>
    void find(const char* name, Function& function) const {
        function = reinterpret_cast<Function>(::dlsym(handle, name));
        if (function == nullptr) throw Error(Fault::Refused, std::string("no TLS: libssl has no ") + name);
    }
};

/// A handle of libssl also finds the functions of libcrypto, because libssl depends on it. The library is never
/// unloaded.
Library open_library() {
    for (const char* name : {"libssl.so.3", "libssl.so.1.1"})
        if (void* handle = ::dlopen(name, RTLD_NOW | RTLD_LOCAL)) return {handle};
    throw Error(Fault::Refused, "no TLS: libssl.so.3 (OpenSSL; Debian: libssl3) is not installed");
}

void find_ssl(const Library& library, OpenSsl& ssl) {
    library.find("TLS_method", ssl.tls_method);
    library.find("SSL_CTX_new", ssl.ctx_new);
    library.find("SSL_CTX_free", ssl.ctx_free);
    library.find("SSL_CTX_ctrl", ssl.ctx_ctrl);
    library.find("SSL_CTX_set_ciphersuites", ssl.ctx_set_ciphersuites);
    library.find("SSL_CTX_set_num_tickets", ssl.ctx_set_num_tickets);
    library.find("SSL_CTX_set_default_read_buffer_len", ssl.ctx_set_read_buffer);
    library.find("SSL_CTX_set_verify", ssl.ctx_set_verify);
    library.find("SSL_CTX_set_default_passwd_cb", ssl.ctx_set_password);
    library.find("SSL_CTX_load_verify_locations", ssl.ctx_load_ca);
    library.find("SSL_CTX_use_certificate_chain_file", ssl.ctx_use_certificate);
    library.find("SSL_CTX_use_PrivateKey_file", ssl.ctx_use_key);
    library.find("SSL_CTX_check_private_key", ssl.ctx_check_key);
    library.find("SSL_new", ssl.ssl_new);
    library.find("SSL_free", ssl.ssl_free);
    library.find("SSL_set_bio", ssl.set_bio);
    library.find("SSL_set_accept_state", ssl.set_accept);
    library.find("SSL_set_connect_state", ssl.set_connect);
    library.find("SSL_get0_param", ssl.get_param);
    library.find("SSL_do_handshake", ssl.handshake);
    library.find("SSL_read_ex", ssl.read);
    library.find("SSL_write_ex", ssl.write);
    library.find("SSL_get_error", ssl.get_error);
    library.find("SSL_key_update", ssl.key_update);
    library.find("SSL_get_verify_result", ssl.verify_result);
}

void find_crypto(const Library& library, OpenSsl& ssl) {
    library.find("X509_VERIFY_PARAM_set1_host", ssl.param_set_host);
    library.find("X509_VERIFY_PARAM_set1_ip_asc", ssl.param_set_ip);
    library.find("X509_verify_cert_error_string", ssl.verify_text);
    library.find("BIO_meth_new", ssl.meth_new);
    library.find("BIO_meth_set_write_ex", ssl.meth_set_write);
    library.find("BIO_meth_set_read_ex", ssl.meth_set_read);
    library.find("BIO_meth_set_ctrl", ssl.meth_set_ctrl);
    library.find("BIO_new", ssl.bio_new);
    library.find("BIO_set_data", ssl.bio_set_data);
    library.find("BIO_get_data", ssl.bio_get_data);
    library.find("BIO_set_init", ssl.bio_set_init);
    library.find("BIO_set_flags", ssl.bio_set_flags);
    library.find("BIO_clear_flags", ssl.bio_clear_flags);
    library.find("ERR_get_error", ssl.next_error);
    library.find("ERR_clear_error", ssl.clear_errors);
    library.find("ERR_reason_error_string", ssl.error_text);
}

OpenSsl load_all() {
    const Library library = open_library();
    OpenSsl ssl{};
    find_ssl(library, ssl);
    find_crypto(library, ssl);
    return ssl;
}

}  // namespace

const OpenSsl& OpenSsl::load() {
    static const OpenSsl ssl = load_all();  // retried after a failure
    return ssl;
}

std::string OpenSsl::reason() const {
    const unsigned long code = next_error();
    clear_errors();
    const char* text = code == 0 ? nullptr : error_text(code);
    return text == nullptr ? "error " + std::to_string(code) : text;
}

}  // namespace penstock::dataplane
