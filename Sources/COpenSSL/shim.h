#ifndef WAKEGATE_COPENSSL_SHIM_H
#define WAKEGATE_COPENSSL_SHIM_H
#include <openssl/ssl.h>
#include <openssl/err.h>
#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/crypto.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>
#include <openssl/pem.h>
#include <openssl/ec.h>
#include <openssl/objects.h>
#include <string.h>

// Function-like macros and variadics of OpenSSL that the transport needs.
static inline int wakegate_ctx_min_tls12(SSL_CTX *ctx) {
    return (int)SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION);
}
static inline void wakegate_ctx_mode(SSL_CTX *ctx) {
    SSL_CTX_set_mode(
        ctx, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER
    );
}
static inline void wakegate_ctx_read_ahead(SSL_CTX *ctx) { SSL_CTX_set_read_ahead(ctx, 1); }
static inline void wakegate_ctx_options(SSL_CTX *ctx) {
    SSL_CTX_set_options(ctx, SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION | SSL_OP_IGNORE_UNEXPECTED_EOF);
}
static inline void wakegate_bio_retry_read(BIO *bio) { BIO_set_retry_read(bio); }
static inline void wakegate_bio_clear_retry(BIO *bio) { BIO_clear_retry_flags(bio); }
static inline EVP_PKEY *wakegate_new_p256(void) { return EVP_EC_gen("P-256"); }
static inline void wakegate_x509v3_ctx(X509V3_CTX *ctx, X509 *issuer, X509 *subject) {
    X509V3_set_ctx_nodb(ctx);
    X509V3_set_ctx(ctx, issuer, subject, NULL, NULL, 0);
}
static inline int wakegate_is_p256(const EVP_PKEY *key) {
    char name[32];
    return EVP_PKEY_is_a(key, "EC") && EVP_PKEY_get_group_name(key, name, sizeof name, NULL) == 1
        && strcmp(name, SN_X9_62_prime256v1) == 0;
}
// SHA-256 and ECDSA; the signature is R and then S, 32 bytes each, as JSON web tokens have it. 1 on success.
static inline int wakegate_sign_es256(EVP_PKEY *key, const unsigned char *message, size_t count, unsigned char *out) {
    unsigned char der[128];
    size_t der_count = sizeof der;
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    int is_signed = context != NULL && EVP_DigestSignInit(context, NULL, EVP_sha256(), NULL, key) == 1
        && EVP_DigestSign(context, der, &der_count, message, count) == 1;
    EVP_MD_CTX_free(context);
    if (!is_signed) return 0;
    const unsigned char *cursor = der;
    ECDSA_SIG *pair = d2i_ECDSA_SIG(NULL, &cursor, (long)der_count);
    if (pair == NULL) return 0;
    int is_written = BN_bn2binpad(ECDSA_SIG_get0_r(pair), out, 32) == 32
        && BN_bn2binpad(ECDSA_SIG_get0_s(pair), out + 32, 32) == 32;
    ECDSA_SIG_free(pair);
    return is_written;
}
// Whether `signature`, R and then S, 32 bytes each, is this key's for the message. 1 when it is.
static inline int wakegate_verify_es256(
    EVP_PKEY *key, const unsigned char *message, size_t count, const unsigned char *signature
) {
    unsigned char *der = NULL;
    ECDSA_SIG *pair = ECDSA_SIG_new();
    BIGNUM *r = BN_bin2bn(signature, 32, NULL), *s = BN_bin2bn(signature + 32, 32, NULL);
    if (pair == NULL || r == NULL || s == NULL || ECDSA_SIG_set0(pair, r, s) != 1) {
        BN_free(r);
        BN_free(s);
        ECDSA_SIG_free(pair);
        return 0;
    }
    int der_count = i2d_ECDSA_SIG(pair, &der);
    ECDSA_SIG_free(pair);
    if (der_count <= 0) return 0;
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    int is_good = context != NULL && EVP_DigestVerifyInit(context, NULL, EVP_sha256(), NULL, key) == 1
        && EVP_DigestVerify(context, der, (size_t)der_count, message, count) == 1;
    EVP_MD_CTX_free(context);
    OPENSSL_free(der);
    ERR_clear_error();
    return is_good;
}
#endif
