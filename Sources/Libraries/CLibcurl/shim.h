#ifndef WAKEGATE_CLIBCURL_SHIM_H
#define WAKEGATE_CLIBCURL_SHIM_H
#include <curl/curl.h>
#include <dlfcn.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>

// Swift cannot call C variadics, so each type of argument has a separate function.
static inline CURLcode wakegate_curl_set_long(CURL *handle, CURLoption option, long value) {
    return curl_easy_setopt(handle, option, value);
}

static inline CURLcode wakegate_curl_set_text(CURL *handle, CURLoption option, const char *value) {
    return curl_easy_setopt(handle, option, value);
}

static inline CURLcode wakegate_curl_set_pointer(CURL *handle, CURLoption option, const void *value) {
    return curl_easy_setopt(handle, option, value);
}

// The size is set first: CURLOPT_COPYPOSTFIELDS copies as many bytes as POSTFIELDSIZE says.
static inline CURLcode wakegate_curl_set_body(CURL *handle, const void *bytes, long long count) {
    CURLcode code = curl_easy_setopt(handle, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)count);
    return code == CURLE_OK ? curl_easy_setopt(handle, CURLOPT_COPYPOSTFIELDS, (const char *)bytes) : code;
}

static inline CURLcode wakegate_curl_set_headers(CURL *handle, struct curl_slist *headers) {
    return curl_easy_setopt(handle, CURLOPT_HTTPHEADER, headers);
}

typedef size_t (*wakegate_curl_receiver)(char *bytes, size_t size, size_t count, void *context);

static inline CURLcode wakegate_curl_set_receivers(CURL *handle, wakegate_curl_receiver header,
                                                   wakegate_curl_receiver body, void *context) {
    CURLcode code = curl_easy_setopt(handle, CURLOPT_HEADERFUNCTION, header);
    if (code == CURLE_OK) code = curl_easy_setopt(handle, CURLOPT_HEADERDATA, context);
    if (code == CURLE_OK) code = curl_easy_setopt(handle, CURLOPT_WRITEFUNCTION, body);
    return code == CURLE_OK ? curl_easy_setopt(handle, CURLOPT_WRITEDATA, context) : code;
}

typedef size_t (*wakegate_curl_sender)(char *room, size_t size, size_t count, void *context);

// Sets callbacks for the body; `seek` restarts it when a request is sent again.
static inline CURLcode wakegate_curl_set_sender(CURL *handle, wakegate_curl_sender send, curl_seek_callback seek,
                                                long long count, void *context) {
    CURLcode code = curl_easy_setopt(handle, CURLOPT_UPLOAD, 1L);
    if (code == CURLE_OK) code = curl_easy_setopt(handle, CURLOPT_INFILESIZE_LARGE, (curl_off_t)count);
    if (code == CURLE_OK) code = curl_easy_setopt(handle, CURLOPT_READFUNCTION, send);
    if (code == CURLE_OK) code = curl_easy_setopt(handle, CURLOPT_READDATA, context);
    if (code == CURLE_OK) code = curl_easy_setopt(handle, CURLOPT_SEEKFUNCTION, seek);
    return code == CURLE_OK ? curl_easy_setopt(handle, CURLOPT_SEEKDATA, context) : code;
}

// Sets the callbacks that open a socket, and that are called before a request is sent on a new or reused connection.
static inline CURLcode wakegate_curl_set_gate(CURL *handle, curl_opensocket_callback open,
                                              curl_prereq_callback begin, void *context) {
    CURLcode code = curl_easy_setopt(handle, CURLOPT_OPENSOCKETFUNCTION, open);
    if (code == CURLE_OK) code = curl_easy_setopt(handle, CURLOPT_OPENSOCKETDATA, context);
    if (code == CURLE_OK) code = curl_easy_setopt(handle, CURLOPT_PREREQFUNCTION, begin);
    return code == CURLE_OK ? curl_easy_setopt(handle, CURLOPT_PREREQDATA, context) : code;
}

// Writes the address in network order and returns its length: 4 or 16 bytes, 0 for another family.
static inline size_t wakegate_curl_address(const struct curl_sockaddr *address, unsigned char *bytes) {
    if (address->family == AF_INET) {
        memcpy(bytes, &((const struct sockaddr_in *)&address->addr)->sin_addr, 4);
        return 4;
    }
    if (address->family == AF_INET6) {
        memcpy(bytes, &((const struct sockaddr_in6 *)&address->addr)->sin6_addr, 16);
        return 16;
    }
    return 0;
}

// Opens a socket whose peer may leave bytes unacknowledged for `silence` milliseconds; 0 for the system's default.
static inline curl_socket_t wakegate_curl_open_socket(const struct curl_sockaddr *address, unsigned int silence) {
    curl_socket_t made = socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
    if (made != CURL_SOCKET_BAD && silence > 0) {
        setsockopt(made, IPPROTO_TCP, TCP_USER_TIMEOUT, &silence, sizeof silence);
    }
    return made;
}

// The TLS connections whose peers have ended them in order (close_notify). libcurl 7.88 treats a connection that ends
// without it, which an attacker can cause, as one that has ended in order.
typedef struct {
    const void *connections[4096];
    size_t next;
} wakegate_curl_tls_ends;

// Returns whether the connection is in the list, and removes it.
static inline int wakegate_curl_tls_take_end(wakegate_curl_tls_ends *ends, const void *connection) {
    size_t index, count = sizeof ends->connections / sizeof ends->connections[0];
    int found = 0;
    for (index = 0; index < count; index++) {
        if (ends->connections[index] != connection) continue;
        ends->connections[index] = NULL;
        found = 1;
    }
    return found;
}

// Finds a function of OpenSSL in the libraries that libcurl has loaded, so that the program need not link OpenSSL.
// Other TLS libraries lack these functions; their connections are then never treated as cut.
static inline void *wakegate_curl_tls_function(const char *name) { return dlsym(NULL, name); }

// Sets up libcurl for the process. OpenSSL keeps its state at exit() (OPENSSL_INIT_NO_ATEXIT is 0x80000): it would free
// the state while other threads still use their connections.
static inline CURLcode wakegate_curl_begin(void) {
    int (*begin)(uint64_t, const void *) =
        (int (*)(uint64_t, const void *))wakegate_curl_tls_function("OPENSSL_init_crypto");
    if (begin != NULL) begin(0x80000, NULL);
    return curl_global_init(CURL_GLOBAL_DEFAULT);
}

// Receives OpenSSL's events of a connection: SSL_CB_HANDSHAKE_START is 0x10, SSL_CB_READ_ALERT 0x4004, close_notify 0.
static inline void wakegate_curl_tls_told(const void *connection, int where, int value) {
    void *(*context)(const void *);
    void *(*data)(const void *, int);
    wakegate_curl_tls_ends *ends;
    if ((where & 0x10) == 0 && (where != 0x4004 || (value & 0xFF) != 0)) return;
    context = (void *(*)(const void *))wakegate_curl_tls_function("SSL_get_SSL_CTX");
    data = (void *(*)(const void *, int))wakegate_curl_tls_function("SSL_CTX_get_ex_data");
    if (context == NULL || data == NULL) return;
    if ((ends = (wakegate_curl_tls_ends *)data(context(connection), 0)) == NULL) return;
    // An earlier connection may have had the same address.
    wakegate_curl_tls_take_end(ends, connection);
    if (where != 0x4004) return;
    ends->connections[ends->next] = connection;
    ends->next = (ends->next + 1) % (sizeof ends->connections / sizeof ends->connections[0]);
}

static inline CURLcode wakegate_curl_tls_begin(CURL *handle, void *context, void *ends) {
    void (*tell)(void *, void (*)(const void *, int, int)) =
        (void (*)(void *, void (*)(const void *, int, int)))wakegate_curl_tls_function("SSL_CTX_set_info_callback");
    int (*keep)(void *, int, void *) = (int (*)(void *, int, void *))wakegate_curl_tls_function("SSL_CTX_set_ex_data");
    (void)handle;
    if (tell == NULL || keep == NULL || keep(context, 0, ends) != 1) return CURLE_OK;
    tell(context, wakegate_curl_tls_told);
    return CURLE_OK;
}

// Records the ends of TLS connections in `ends`, which must outlive them.
static inline CURLcode wakegate_curl_set_tls_ends(CURL *handle, wakegate_curl_tls_ends *ends) {
    CURLcode code = curl_easy_setopt(handle, CURLOPT_SSL_CTX_DATA, ends);
    return code == CURLE_OK ? curl_easy_setopt(handle, CURLOPT_SSL_CTX_FUNCTION, wakegate_curl_tls_begin) : code;
}

// Returns the OpenSSL connection of a request in progress; NULL if it has none.
static inline const void *wakegate_curl_tls_connection(CURL *handle) {
    struct curl_tlssessioninfo *found = NULL;
    if (curl_easy_getinfo(handle, CURLINFO_TLS_SSL_PTR, &found) != CURLE_OK || found == NULL) return NULL;
    return found->backend == CURLSSLBACKEND_OPENSSL ? found->internals : NULL;
}

// Returns whether an answer over HTTP/1.0 or HTTP/1.1 that ends with its connection ended without the end of TLS.
static inline int wakegate_curl_is_cut(CURL *handle, wakegate_curl_tls_ends *ends, const void *connection) {
    long version = 0;
    curl_easy_getinfo(handle, CURLINFO_HTTP_VERSION, &version);
    if (version != CURL_HTTP_VERSION_1_0 && version != CURL_HTTP_VERSION_1_1) return 0;
    return wakegate_curl_tls_take_end(ends, connection) == 0;
}

static inline CURLcode wakegate_curl_set_list(CURL *handle, CURLoption option, struct curl_slist *list) {
    return curl_easy_setopt(handle, option, list);
}

static inline long wakegate_curl_system_error(CURL *handle) {
    long number = 0;
    curl_easy_getinfo(handle, CURLINFO_OS_ERRNO, &number);
    return number;
}

// Returns the number of bytes of the request's body that libcurl has sent.
static inline long long wakegate_curl_sent_bytes(CURL *handle) {
    curl_off_t bytes = 0;
    curl_easy_getinfo(handle, CURLINFO_SIZE_UPLOAD_T, &bytes);
    return (long long)bytes;
}

// Creates a handle for cookies that the handles of one thread share; NULL if memory is exhausted.
static inline CURLSH *wakegate_curl_make_cookies(void) {
    CURLSH *share = curl_share_init();
    if (share == NULL || curl_share_setopt(share, CURLSHOPT_SHARE, CURL_LOCK_DATA_COOKIE) == CURLSHE_OK) return share;
    curl_share_cleanup(share);
    return NULL;
}

static inline CURLMcode wakegate_curl_multi_set_long(CURLM *multi, CURLMoption option, long value) {
    return curl_multi_setopt(multi, option, value);
}

// The result is part of a union that Swift imports only as bytes.
static inline CURL *wakegate_curl_next_done(CURLM *multi, CURLcode *result) {
    int left = 0;
    CURLMsg *message;
    while ((message = curl_multi_info_read(multi, &left)) != (CURLMsg *)0) {
        if (message->msg == CURLMSG_DONE) {
            *result = message->data.result;
            return message->easy_handle;
        }
    }
    return (CURL *)0;
}
#endif
