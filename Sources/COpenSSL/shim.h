#ifndef WAKEGATE_COPENSSL_SHIM_H
#define WAKEGATE_COPENSSL_SHIM_H
#include <openssl/ssl.h>
#include <openssl/err.h>
#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>
#include <openssl/pem.h>

// Function-like macros and variadics of OpenSSL that the transport needs.
static inline int wakegate_ctx_min_tls12(SSL_CTX *ctx) { return (int)SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION); }
static inline void wakegate_ctx_mode(SSL_CTX *ctx) { SSL_CTX_set_mode(ctx, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER); }
static inline void wakegate_ctx_read_ahead(SSL_CTX *ctx) { SSL_CTX_set_read_ahead(ctx, 1); }
static inline void wakegate_ctx_options(SSL_CTX *ctx) { SSL_CTX_set_options(ctx, SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION | SSL_OP_IGNORE_UNEXPECTED_EOF); }
static inline void wakegate_bio_retry_read(BIO *bio) { BIO_set_retry_read(bio); }
static inline void wakegate_bio_clear_retry(BIO *bio) { BIO_clear_retry_flags(bio); }
static inline EVP_PKEY *wakegate_new_p256(void) { return EVP_EC_gen("P-256"); }
static inline void wakegate_x509v3_ctx(X509V3_CTX *ctx, X509 *issuer, X509 *subject) {
    X509V3_set_ctx_nodb(ctx);
    X509V3_set_ctx(ctx, issuer, subject, NULL, NULL, 0);
}
#endif
