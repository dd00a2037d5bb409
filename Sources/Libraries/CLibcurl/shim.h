#ifndef WAKEGATE_CLIBCURL_SHIM_H
#define WAKEGATE_CLIBCURL_SHIM_H
#include <curl/curl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>

// Swift calls no C variadics, so each type of argument has a function of its own.
static inline CURLcode wakegate_curl_set_long(CURL *handle, CURLoption option, long value) {
    return curl_easy_setopt(handle, option, value);
}

static inline CURLcode wakegate_curl_set_text(CURL *handle, CURLoption option, const char *value) {
    return curl_easy_setopt(handle, option, value);
}

static inline CURLcode wakegate_curl_set_pointer(CURL *handle, CURLoption option, const void *value) {
    return curl_easy_setopt(handle, option, value);
}

// The size comes first: CURLOPT_COPYPOSTFIELDS copies as many bytes as POSTFIELDSIZE said before.
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

// The body comes from a callback, which is asked to begin again where a request is sent anew.
static inline CURLcode wakegate_curl_set_sender(CURL *handle, wakegate_curl_sender send, curl_seek_callback seek,
                                                long long count, void *context) {
    CURLcode code = curl_easy_setopt(handle, CURLOPT_UPLOAD, 1L);
    if (code == CURLE_OK) code = curl_easy_setopt(handle, CURLOPT_INFILESIZE_LARGE, (curl_off_t)count);
    if (code == CURLE_OK) code = curl_easy_setopt(handle, CURLOPT_READFUNCTION, send);
    if (code == CURLE_OK) code = curl_easy_setopt(handle, CURLOPT_READDATA, context);
    if (code == CURLE_OK) code = curl_easy_setopt(handle, CURLOPT_SEEKFUNCTION, seek);
    return code == CURLE_OK ? curl_easy_setopt(handle, CURLOPT_SEEKDATA, context) : code;
}

// Who may open a socket, and who is told before a request is sent on a connection, new or used before.
static inline CURLcode wakegate_curl_set_gate(CURL *handle, curl_opensocket_callback open,
                                              curl_prereq_callback begin, void *context) {
    CURLcode code = curl_easy_setopt(handle, CURLOPT_OPENSOCKETFUNCTION, open);
    if (code == CURLE_OK) code = curl_easy_setopt(handle, CURLOPT_OPENSOCKETDATA, context);
    if (code == CURLE_OK) code = curl_easy_setopt(handle, CURLOPT_PREREQFUNCTION, begin);
    return code == CURLE_OK ? curl_easy_setopt(handle, CURLOPT_PREREQDATA, context) : code;
}

// The address in network order: 4 bytes, 16, or none of another family.
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

// A socket for the address whose peer may leave bytes unacknowledged for so long; 0 for as long as the system likes.
static inline curl_socket_t wakegate_curl_open_socket(const struct curl_sockaddr *address, unsigned int silence) {
    curl_socket_t made = socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
    if (made != CURL_SOCKET_BAD && silence > 0) {
        setsockopt(made, IPPROTO_TCP, TCP_USER_TIMEOUT, &silence, sizeof silence);
    }
    return made;
}

static inline CURLcode wakegate_curl_set_list(CURL *handle, CURLoption option, struct curl_slist *list) {
    return curl_easy_setopt(handle, option, list);
}

static inline long wakegate_curl_system_error(CURL *handle) {
    long number = 0;
    curl_easy_getinfo(handle, CURLINFO_OS_ERRNO, &number);
    return number;
}

// Seconds of a retry-after field in either form; 0 when there is none.
static inline long long wakegate_curl_retry_after(CURL *handle) {
    curl_off_t seconds = 0;
    curl_easy_getinfo(handle, CURLINFO_RETRY_AFTER, &seconds);
    return (long long)seconds;
}

static inline long wakegate_curl_status(CURL *handle) {
    long status = 0;
    curl_easy_getinfo(handle, CURLINFO_RESPONSE_CODE, &status);
    return status;
}

static inline CURLMcode wakegate_curl_multi_set_long(CURLM *multi, CURLMoption option, long value) {
    return curl_multi_setopt(multi, option, value);
}

// The result is part of a union that Swift sees only as bytes.
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
