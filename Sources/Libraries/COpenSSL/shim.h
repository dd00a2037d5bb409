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
#include <time.h>

// OpenSSL's function-like macros and variadics that the transport needs.
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
// The TLS 1.2 ciphers that HTTP/2 allows: ephemeral keys and authenticated encryption (RFC 9113 section 9.2.2 and
// appendix A).
static inline int wakegate_ctx_ciphers(SSL_CTX *ctx) {
    return SSL_CTX_set_cipher_list(ctx, "ECDHE+AESGCM:ECDHE+CHACHA20");
}
// Counts each received record that carries no application data. In TLS 1.2 the record's header shows its type; TLS 1.3
// hides it, and OpenSSL reports it again when the record is decrypted.
static inline void wakegate_count_record(
    int is_ours, int version, int kind, const void *bytes, size_t count, SSL *ssl, void *records
) {
    (void)version, (void)ssl;
    if (is_ours || count == 0 || (kind != SSL3_RT_HEADER && kind != SSL3_RT_INNER_CONTENT_TYPE)) return;
    if (*(const unsigned char *)bytes != SSL3_RT_APPLICATION_DATA) ++*(unsigned *)records;
}
static inline void wakegate_count_records(SSL *ssl, unsigned *records) {
    SSL_set_msg_callback(ssl, wakegate_count_record);
    SSL_set_msg_callback_arg(ssl, records);
}
// Accepts every client certificate in the handshake; it is verified afterwards.
static inline int wakegate_take_certificate(X509_STORE_CTX *ctx, void *unused) {
    (void)unused;
    X509_STORE_CTX_set_error(ctx, X509_V_OK);
    return 1;
}
// Does not resume a session with a client certificate: the session lacks its chain, which may no longer be valid.
static inline SSL_TICKET_RETURN wakegate_take_ticket(
    SSL *ssl, SSL_SESSION *session, const unsigned char *name, size_t count, SSL_TICKET_STATUS status, void *unused
) {
    (void)ssl, (void)name, (void)count, (void)unused;
    if (status != SSL_TICKET_SUCCESS && status != SSL_TICKET_SUCCESS_RENEW) return SSL_TICKET_RETURN_IGNORE_RENEW;
    if (session == NULL || SSL_SESSION_get0_peer(session) != NULL) return SSL_TICKET_RETURN_IGNORE_RENEW;
    return status == SSL_TICKET_SUCCESS ? SSL_TICKET_RETURN_USE : SSL_TICKET_RETURN_USE_RENEW;
}
static inline void wakegate_ctx_ask_certificate(SSL_CTX *ctx, long chain_bytes_max) {
    SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, NULL);
    SSL_CTX_set_cert_verify_callback(ctx, wakegate_take_certificate, NULL);
    SSL_CTX_set_max_cert_list(ctx, chain_bytes_max);
    // Only tickets, which pass through the callback.
    SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_session_ticket_cb(ctx, NULL, wakegate_take_ticket, NULL);
}
static inline void wakegate_bio_retry_read(BIO *bio) { BIO_set_retry_read(bio); }
static inline void wakegate_bio_clear_retry(BIO *bio) { BIO_clear_retry_flags(bio); }
// Creates a store that trusts each certificate in it, whether or not it is self-signed.
static inline X509_STORE *wakegate_store_new(void) {
    X509_STORE *store = X509_STORE_new();
    if (store != NULL) X509_STORE_set_flags(store, X509_V_FLAG_PARTIAL_CHAIN);
    return store;
}
// Adds every certificate of a PEM text; returns their number, or -1 if there is none or the text is invalid.
static inline int wakegate_store_add_authorities(X509_STORE *store, BIO *pem) {
    STACK_OF(X509_INFO) *list = PEM_X509_INFO_read_bio(pem, NULL, NULL, NULL);
    int added = 0, is_good = list != NULL;
    for (int i = 0; is_good && i < sk_X509_INFO_num(list); i++) {
        X509 *certificate = sk_X509_INFO_value(list, i)->x509;
        if (certificate == NULL) continue;
        is_good = X509_STORE_add_cert(store, certificate) == 1;
        added++;
    }
    sk_X509_INFO_pop_free(list, X509_INFO_free);
    return is_good && added > 0 ? added : -1;
}
static inline int wakegate_store_has_signed(X509_STORE *store, X509_CRL *crl) {
    STACK_OF(X509) *authorities = X509_STORE_get1_all_certs(store);
    int is_signed = 0;
    for (int i = 0; !is_signed && i < sk_X509_num(authorities); i++) {
        X509 *authority = sk_X509_value(authorities, i);
        is_signed = X509_NAME_cmp(X509_get_subject_name(authority), X509_CRL_get_issuer(crl)) == 0
            && X509_CRL_verify(crl, X509_get0_pubkey(authority)) == 1;
    }
    sk_X509_pop_free(authorities, X509_free);
    return is_signed;
}
// Adds every revocation list of a PEM text; returns their number, -1 if there is none or the text is invalid, -2 if one
// is not signed by an authority of the store. Sets `overdue` to 1 if a next list should already exist.
static inline int wakegate_store_add_revocations(X509_STORE *store, BIO *pem, int *overdue) {
    STACK_OF(X509_INFO) *list = PEM_X509_INFO_read_bio(pem, NULL, NULL, NULL);
    int added = 0, fault = list == NULL ? -1 : 0;
    for (int i = 0; fault == 0 && i < sk_X509_INFO_num(list); i++) {
        X509_CRL *crl = sk_X509_INFO_value(list, i)->crl;
        if (crl == NULL) continue;
        const ASN1_TIME *next = X509_CRL_get0_nextUpdate(crl);
        if (next != NULL && X509_cmp_current_time(next) < 0) *overdue = 1;
        if (!wakegate_store_has_signed(store, crl)) fault = -2;
        else if (X509_STORE_add_crl(store, crl) != 1) fault = -1;
        added++;
    }
    sk_X509_INFO_pop_free(list, X509_INFO_free);
    if (fault != 0 || added == 0) return fault != 0 ? fault : -1;
    X509_STORE_set_flags(store, X509_V_FLAG_CRL_CHECK | X509_V_FLAG_CRL_CHECK_ALL);
    return added;
}
// An authority without a list has revoked nothing, and a list is valid until there is another.
static inline int wakegate_verify_step(int is_good, X509_STORE_CTX *ctx) {
    if (is_good) return 1;
    switch (X509_STORE_CTX_get_error(ctx)) {
    case X509_V_ERR_UNABLE_TO_GET_CRL:
    case X509_V_ERR_CRL_HAS_EXPIRED:
    case X509_V_ERR_CRL_NOT_YET_VALID:
        break;
    case X509_V_ERR_UNABLE_TO_GET_CRL_ISSUER:
    case X509_V_ERR_KEYUSAGE_NO_CRL_SIGN:
    case X509_V_ERR_CRL_SIGNATURE_FAILURE:
        // The issuer of an authority that is trusted on its own is not in the chain, so its list is checked with the
        // wrong key here; the signature of every list was verified when it was read.
        if (X509_STORE_CTX_get_error_depth(ctx) + 1 < sk_X509_num(X509_STORE_CTX_get0_chain(ctx))) return 0;
        break;
    default:
        return 0;
    }
    X509_STORE_CTX_set_error(ctx, X509_V_OK);
    return 1;
}
// Returns X509_V_OK, or the reason why a client's certificate is not trusted.
static inline int wakegate_verify_client(X509_STORE *store, X509 *leaf, STACK_OF(X509) *chain) {
    X509_STORE_CTX *ctx = X509_STORE_CTX_new();
    int error = X509_V_ERR_OUT_OF_MEM;
    if (ctx != NULL && X509_STORE_CTX_init(ctx, store, leaf, chain) == 1
        && X509_STORE_CTX_set_default(ctx, "ssl_client") == 1) {
        // No keys below 112 bits, no SHA-1, and no longer chain than anyone uses.
        X509_VERIFY_PARAM_set_auth_level(X509_STORE_CTX_get0_param(ctx), 2);
        X509_VERIFY_PARAM_set_depth(X509_STORE_CTX_get0_param(ctx), 8);
        X509_STORE_CTX_set_verify_cb(ctx, wakegate_verify_step);
        int is_good = X509_verify_cert(ctx) == 1;
        error = X509_STORE_CTX_get_error(ctx);
        if (!is_good && error == X509_V_OK) error = X509_V_ERR_UNSPECIFIED;
        if (is_good) error = X509_V_OK;
    }
    X509_STORE_CTX_free(ctx);
    ERR_clear_error();
    return error;
}
static inline void wakegate_free_chain(STACK_OF(X509) *chain) { sk_X509_pop_free(chain, X509_free); }
// Returns the time, in milliseconds since 1970, after which a certificate is no longer valid; -1 if unknown.
static inline long long wakegate_expiry(const X509 *certificate) {
    struct tm end;
    if (ASN1_TIME_to_tm(X509_get0_notAfter(certificate), &end) != 1) return -1;
    return (long long)timegm(&end) * 1000;
}
// Returns the content of an extension by its dotted object identifier; NULL if there is none.
static inline const ASN1_OCTET_STRING *wakegate_extension(const X509 *certificate, const char *identifier) {
    ASN1_OBJECT *object = OBJ_txt2obj(identifier, 1);
    int index = X509_get_ext_by_OBJ(certificate, object, -1);
    ASN1_OBJECT_free(object);
    return index < 0 ? NULL : X509_EXTENSION_get_data(X509_get_ext(certificate, index));
}
// Returns the value, in UTF-8, of the first attribute `kind` of the subject after the position `index`, and updates
// `index`. Returns its length, or -1; the caller frees the bytes.
static inline int wakegate_subject_value(const X509 *certificate, int kind, int *index, unsigned char **out) {
    const X509_NAME *subject = X509_get_subject_name(certificate);
    *index = X509_NAME_get_index_by_NID(subject, kind, *index);
    if (*index < 0) return -1;
    return ASN1_STRING_to_UTF8(out, X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, *index)));
}
// Writes the subject in the form of RFC 2253, without bytes that could control a terminal or break a log line.
static inline int wakegate_write_subject(BIO *bio, const X509 *certificate) {
    return X509_NAME_print_ex(bio, X509_get_subject_name(certificate), 0, XN_FLAG_RFC2253) >= 0;
}
static inline EVP_PKEY *wakegate_new_p256(void) { return EVP_EC_gen("P-256"); }
static inline void wakegate_x509v3_ctx(X509V3_CTX *ctx, X509 *issuer, X509 *subject) {
    X509V3_set_ctx_nodb(ctx);
    X509V3_set_ctx(ctx, issuer, subject, NULL, NULL, 0);
}
static inline int wakegate_no_password(char *buffer, int size, int is_writing, void *user) {
    (void)buffer, (void)size, (void)is_writing, (void)user;
    return -1;
}
// Reads the public key of a PEM text, which may also be part of a private key. Without the callback, OpenSSL would ask
// the terminal for the password of an encrypted key.
static inline EVP_PKEY *wakegate_public_key(BIO *bio) {
    EVP_PKEY *key = PEM_read_bio_PUBKEY(bio, NULL, wakegate_no_password, NULL);
    if (key != NULL || BIO_reset(bio) != 1) return key;
    return PEM_read_bio_PrivateKey(bio, NULL, wakegate_no_password, NULL);
}
static inline int wakegate_is_p256(const EVP_PKEY *key) {
    char name[32];
    return EVP_PKEY_is_a(key, "EC") && EVP_PKEY_get_group_name(key, name, sizeof name, NULL) == 1
        && strcmp(name, SN_X9_62_prime256v1) == 0;
}
// Signs with SHA-256 and ECDSA; the signature is R followed by S, 32 bytes each, as in JSON web tokens. Returns 1 on
// success.
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
// Returns 1 if `signature` (R followed by S, 32 bytes each) is this key's signature for the message.
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
