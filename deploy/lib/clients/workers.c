// Workers that answer every wake immediately, fast enough to keep a gateway busy: raw HTTP/2, with one connection and
// one stream of wakes for each worker, and one thread for all of them.
//
//     workers PORT TOPIC STREAMS SLOTS [tls] [by-device] [lenient]
//
// With `tls` they trust every certificate; with `by-device` each takes the wakes of the device with its number.
// Prints {"subscribed": ...} when all streams are open, and for each byte of its input {"woken": ..., "answered": ...}:
// the number of wakes so far, and the number of results answered 204. Ends with its input. Ends with 1 when a
// connection ends or a result gets another answer; `lenient` accepts any answer to a result.

#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/ssl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { DATA, HEADERS, RST_STREAM = 3, SETTINGS, PING = 6, GOAWAY };
enum { END_STREAM = 1, ACK = 1, END_HEADERS = 4 };
enum { FRAME_HEAD_BYTES = 9, READ_BYTES = 1 << 17, WAKE_DIGITS = 32, STREAMS_MAX = 1024, PATH_BYTES_MAX = 254 };

typedef struct {
    char *bytes;
    size_t count, room;
} Buffer;

typedef struct {
    int socket;
    // NULL in cleartext.
    SSL *tls;
    uint32_t next_stream;
    // Received bytes that are not parsed yet; text of incomplete events; bytes to send.
    Buffer received, text, sent;
} Worker;

static const char result[] = "{\"result\":\"newData\"}";
static Worker workers[STREAMS_MAX];
static char authority[32];
static long subscribed, woken, answered, streams;
static bool is_tls, is_by_device, is_lenient;

_Noreturn static void fail(const char *what) {
    fprintf(stderr, "workers: %s (%s)\n", what, strerror(errno));
    exit(1);
}

static char *extend(Buffer *buffer, size_t count) {
    if (buffer->room - buffer->count < count) {
        buffer->room = (buffer->room + count) * 2;
        buffer->bytes = realloc(buffer->bytes, buffer->room);
        if (!buffer->bytes) fail("no memory");
    }
    buffer->count += count;
    return buffer->bytes + buffer->count - count;
}

static void append(Buffer *buffer, const void *bytes, size_t count) { memcpy(extend(buffer, count), bytes, count); }

static void drop(Buffer *buffer, size_t count) {
    memmove(buffer->bytes, buffer->bytes + count, buffer->count - count);
    buffer->count -= count;
}

static void frame(Buffer *out, uint8_t kind, uint8_t flags, uint32_t stream, const void *payload, uint32_t count) {
    const uint8_t head[FRAME_HEAD_BYTES] = {
        count >> 16, count >> 8, count, kind, flags, stream >> 24, stream >> 16, stream >> 8, stream,
    };
    append(out, head, sizeof head);
    append(out, payload, count);
}

// A field of fewer than 255 bytes, not indexed, whose name has an index below 15 (RFC 7541 §5.1, §6.2.2).
static size_t literal(uint8_t *block, uint8_t name, const char *value, size_t count) {
    size_t place = 0;
    block[place++] = name;
    block[place++] = (uint8_t)(count < 127 ? count : 127);
    if (count >= 127) block[place++] = (uint8_t)(count - 127);
    memcpy(block + place, value, count);
    return place + count;
}

// HEADERS with :method and :scheme as indexes of the static table (RFC 7541 §6.1).
static void request(Worker *worker, uint8_t method, const char *path, size_t path_count, uint8_t flags) {
    uint8_t block[320] = {0x80 | method, 0x80 | (is_tls ? 7 : 6)};
    size_t count = 2;
    count += literal(block + count, 4, path, path_count);
    count += literal(block + count, 1, authority, strlen(authority));
    frame(&worker->sent, HEADERS, END_HEADERS | flags, worker->next_stream, block, (uint32_t)count);
}

// Receives bytes of a connection. Returns 0 if it has ended, and -1 with EAGAIN if nothing has arrived.
static ssize_t take(Worker *worker, char *room, size_t count) {
    if (!worker->tls) return read(worker->socket, room, count);
    const int taken = SSL_read(worker->tls, room, (int)count);
    if (taken > 0) return taken;
    errno = EAGAIN;
    return SSL_get_error(worker->tls, taken) == SSL_ERROR_WANT_READ ? -1 : 0;
}

static ssize_t give(Worker *worker, const char *bytes, size_t count) {
    if (!worker->tls) return write(worker->socket, bytes, count);
    const int given = SSL_write(worker->tls, bytes, (int)count);
    if (given > 0) return given;
    const int error = SSL_get_error(worker->tls, given);
    errno = error == SSL_ERROR_WANT_WRITE || error == SSL_ERROR_WANT_READ ? EAGAIN : EPIPE;
    return -1;
}

static void flush(Worker *worker) {
    size_t sent = 0;
    while (sent < worker->sent.count) {
        const ssize_t count = give(worker, worker->sent.bytes + sent, worker->sent.count - sent);
        if (count < 0 && errno == EAGAIN) break;
        if (count < 0) fail("a connection takes nothing more");
        sent += (size_t)count;
    }
    drop(&worker->sent, sent);
}

static void answer(Worker *worker, const char *wake) {
    char path[11 + WAKE_DIGITS] = "/v1/wakes/";
    memcpy(path + 10, wake, WAKE_DIGITS);
    woken++;
    request(worker, 3, path, 10 + WAKE_DIGITS, 0);
    frame(&worker->sent, DATA, END_STREAM, worker->next_stream, result, sizeof result - 1);
    worker->next_stream += 2;
}

static void take_events(Worker *worker) {
    static const char start[] = "event: wake\nid: ";
    Buffer *text = &worker->text;
    size_t taken = 0;
    for (;;) {
        const char *event = text->bytes + taken;
        const char *end = memmem(event, text->count - taken, "\n\n", 2);
        if (!end) break;
        if (!memcmp(event, start, sizeof start - 1)) answer(worker, event + sizeof start - 1);
        taken = (size_t)(end + 2 - text->bytes);
    }
    drop(text, taken);
}

static void take_head(uint32_t stream, const uint8_t *block, size_t count) {
    // The first block of a connection begins with the new size of the table (RFC 7541 §6.3).
    while (count > 0 && *block >> 5 == 1) block++, count--;
    if (count > 0 && stream == 1 && *block == 0x88) {
        subscribed++;
    } else if (count > 0 && stream != 1 && *block == 0x89) {
        answered++;
    } else if (stream == 1 || !is_lenient) {
        fail("a request was refused");
    }
}

static void take_frames(Worker *worker) {
    const uint8_t *bytes = (const uint8_t *)worker->received.bytes;
    size_t place = 0, all = worker->received.count;
    while (all - place >= FRAME_HEAD_BYTES) {
        const uint8_t *head = bytes + place;
        const size_t count = (size_t)head[0] << 16 | (size_t)head[1] << 8 | head[2];
        const uint32_t stream = (uint32_t)head[5] << 24 | (uint32_t)head[6] << 16 | (uint32_t)head[7] << 8 | head[8];
        const uint8_t *payload = head + FRAME_HEAD_BYTES;
        if (all - place < FRAME_HEAD_BYTES + count) break;
        place += FRAME_HEAD_BYTES + count;
        switch (head[3]) {
            case DATA:
                if (stream == 1) append(&worker->text, payload, count);
                break;
            case HEADERS: take_head(stream, payload, count); break;
            case SETTINGS:
                if (!(head[4] & ACK)) frame(&worker->sent, SETTINGS, ACK, 0, "", 0);
                break;
            case PING:
                if (!(head[4] & ACK)) frame(&worker->sent, PING, ACK, 0, payload, (uint32_t)count);
                break;
            case RST_STREAM: fail("a stream was reset");
            case GOAWAY: fail("the gateway said goodbye");
        }
    }
    drop(&worker->received, place);
    take_events(worker);
}

static void begin(Worker *worker, SSL_CTX *context, int port, const char *topic, int slots) {
    const struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
    };
    const int one = 1;
    // No table of fields, and windows that are large enough for all input.
    static const uint8_t settings[] = {0, 1, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 4, 0x7F, 0xFF, 0xFF, 0xFF};
    static const uint8_t window[] = {0x7F, 0xFF, 0, 0};
    char path[PATH_BYTES_MAX + 1];
    int count = snprintf(path, sizeof path, "/v1/topics/%s/wakes?slots=%d&name=bench", topic, slots);
    if (is_by_device)
        count += snprintf(path + count, sizeof path - (size_t)count, "&device=%064lx", (long)(worker - workers));
    worker->socket = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(worker->socket, (const struct sockaddr *)&address, sizeof address)) fail("no connection");
    setsockopt(worker->socket, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    if (is_tls) {
        worker->tls = SSL_new(context);
        SSL_set_alpn_protos(worker->tls, (const uint8_t *)"\2h2", 3);
        SSL_set_fd(worker->tls, worker->socket);
        if (SSL_connect(worker->tls) != 1) fail("no handshake");
        SSL_set_mode(worker->tls, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    }
    fcntl(worker->socket, F_SETFL, O_NONBLOCK);
    worker->next_stream = 1;
    append(&worker->sent, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 24);
    frame(&worker->sent, SETTINGS, 0, 0, settings, sizeof settings);
    frame(&worker->sent, 8, 0, 0, window, sizeof window);
    if (count > PATH_BYTES_MAX) fail("the topic's name is too long");
    request(worker, 2, path, (size_t)count, END_STREAM);
    worker->next_stream += 2;
    flush(worker);
}

static void serve(Worker *worker) {
    static char room[READ_BYTES];
    for (;;) {
        const ssize_t count = take(worker, room, READ_BYTES);
        if (count == 0) fail("a connection has ended");
        if (count < 0 && errno != EAGAIN) fail("a connection gives nothing more");
        if (count < 0) break;
        append(&worker->received, room, (size_t)count);
    }
    take_frames(worker);
    flush(worker);
}

// Processes events; returns false at the end of the input.
static bool serve_events(int poll, int milliseconds) {
    struct epoll_event events[64];
    const int ready = epoll_wait(poll, events, 64, milliseconds);
    for (int index = 0; index < ready; index++) {
        char question;
        if (events[index].data.ptr) {
            serve(events[index].data.ptr);
        } else if (read(0, &question, 1) == 1) {
            printf("{\"woken\": %ld, \"answered\": %ld}\n", woken, answered);
        } else {
            return false;
        }
    }
    fflush(stdout);
    return true;
}

int main(int count, char **words) {
    if (count < 5) return 64;
    for (int word = 5; word < count; word++) {
        is_tls |= !strcmp(words[word], "tls");
        is_by_device |= !strcmp(words[word], "by-device");
        is_lenient |= !strcmp(words[word], "lenient");
    }
    const int port = atoi(words[1]), slots = atoi(words[4]);
    SSL_CTX *const context = SSL_CTX_new(TLS_client_method());
    const int poll = epoll_create1(0);
    streams = atol(words[3]);
    if (streams < 1 || streams > STREAMS_MAX) return 64;
    snprintf(authority, sizeof authority, "127.0.0.1:%d", port);
    epoll_ctl(poll, EPOLL_CTL_ADD, 0, &(struct epoll_event){.events = EPOLLIN, .data.ptr = NULL});
    for (long number = 0; number < streams; number++) {
        begin(&workers[number], context, port, words[2], slots);
        struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLET, .data.ptr = &workers[number]};
        epoll_ctl(poll, EPOLL_CTL_ADD, workers[number].socket, &event);
        // A gateway waits only for a limited time for the first answers to its settings.
        if (!serve_events(poll, 0)) return 0;
    }
    while (subscribed < streams)
        if (!serve_events(poll, -1)) return 0;
    printf("{\"subscribed\": %ld}\n", subscribed);
    while (serve_events(poll, -1)) continue;
}
