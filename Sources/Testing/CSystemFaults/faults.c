#define _GNU_SOURCE
#include "CSystemFaults.h"
#include <errno.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>

enum { DESCRIPTORS_MAX = 65536 };

struct wakegate_faults {
    pthread_mutex_t lock;
    struct {
        int step, error;
        int64_t nth, times;
    } plan;
    int64_t calls[WAKEGATE_FAULTS_STEPS];
    int64_t met;
    size_t slow_bytes;
    bool is_turn_of_nothing;
    bool has_joined;
    struct timespec now;
    int64_t open, wrong_closes;
    bool is_open[DESCRIPTORS_MAX];
};

static _Thread_local struct wakegate_faults *current;

// MARK: What tests call

wakegate_faults *wakegate_faults_make(void) {
    struct wakegate_faults *faults = calloc(1, sizeof *faults);
    if (faults) pthread_mutex_init(&faults->lock, NULL);
    return faults;
}

void wakegate_faults_free(wakegate_faults *faults) {
    pthread_mutex_destroy(&faults->lock);
    free(faults);
}

int __real_clock_gettime(clockid_t clock, struct timespec *time);

void wakegate_faults_join(wakegate_faults *faults) {
    if (faults) {
        pthread_mutex_lock(&faults->lock);
        if (!faults->has_joined) __real_clock_gettime(CLOCK_MONOTONIC, &faults->now);
        faults->has_joined = true;
        pthread_mutex_unlock(&faults->lock);
    }
    current = faults;
}

void wakegate_faults_plan(wakegate_faults *faults, int step, int64_t nth, int64_t times, int error) {
    pthread_mutex_lock(&faults->lock);
    faults->plan.step = step;
    faults->plan.nth = nth;
    faults->plan.times = times;
    faults->plan.error = error;
    for (int index = 0; index < WAKEGATE_FAULTS_STEPS; index++) faults->calls[index] = 0;
    faults->met = 0;
    pthread_mutex_unlock(&faults->lock);
}

void wakegate_faults_slow(wakegate_faults *faults, size_t bytes) {
    pthread_mutex_lock(&faults->lock);
    faults->slow_bytes = bytes;
    pthread_mutex_unlock(&faults->lock);
}

void wakegate_faults_advance(wakegate_faults *faults, int64_t milliseconds) {
    pthread_mutex_lock(&faults->lock);
    faults->now.tv_sec += milliseconds / 1000;
    faults->now.tv_nsec += milliseconds % 1000 * 1000000;
    if (faults->now.tv_nsec >= 1000000000) {
        faults->now.tv_sec++;
        faults->now.tv_nsec -= 1000000000;
    }
    pthread_mutex_unlock(&faults->lock);
}

static int64_t read_locked(wakegate_faults *faults, const int64_t *value) {
    pthread_mutex_lock(&faults->lock);
    int64_t found = *value;
    pthread_mutex_unlock(&faults->lock);
    return found;
}

int64_t wakegate_faults_calls(wakegate_faults *faults, int step) { return read_locked(faults, &faults->calls[step]); }
int64_t wakegate_faults_met(wakegate_faults *faults) { return read_locked(faults, &faults->met); }
int64_t wakegate_faults_open(wakegate_faults *faults) { return read_locked(faults, &faults->open); }
int64_t wakegate_faults_wrong_closes(wakegate_faults *faults) { return read_locked(faults, &faults->wrong_closes); }

// MARK: Plans

// Counts a call of this thread. Returns 0 if it should proceed, otherwise the error to fail with.
static int fault_of(int step) {
    struct wakegate_faults *faults = current;
    if (!faults) return 0;
    pthread_mutex_lock(&faults->lock);
    int64_t number = faults->calls[step]++;
    bool is_met = faults->plan.times > 0 && faults->plan.step == step && number >= faults->plan.nth
        && number - faults->plan.nth < faults->plan.times;
    if (is_met) faults->met++;
    int error = is_met ? faults->plan.error : 0;
    pthread_mutex_unlock(&faults->lock);
    return error;
}

static int failed(int error) {
    errno = error;
    return -1;
}

static int opened(int descriptor) {
    struct wakegate_faults *faults = current;
    if (!faults || descriptor < 0 || descriptor >= DESCRIPTORS_MAX) return descriptor;
    int error = errno;
    pthread_mutex_lock(&faults->lock);
    faults->is_open[descriptor] = true;
    faults->open++;
    pthread_mutex_unlock(&faults->lock);
    errno = error;
    return descriptor;
}

// Returns the most bytes that one call may transfer; 0 if it transfers none.
static size_t bytes_of(size_t count, bool is_send) {
    struct wakegate_faults *faults = current;
    if (!faults) return count;
    pthread_mutex_lock(&faults->lock);
    if (faults->slow_bytes && faults->slow_bytes < count) count = faults->slow_bytes;
    if (faults->slow_bytes && is_send) {
        faults->is_turn_of_nothing = !faults->is_turn_of_nothing;
        if (faults->is_turn_of_nothing) count = 0;
    }
    pthread_mutex_unlock(&faults->lock);
    return count;
}

// MARK: Sockets

int __real_accept4(int listener, struct sockaddr *name, socklen_t *size, int flags);
int __wrap_accept4(int listener, struct sockaddr *name, socklen_t *size, int flags) {
    int error = fault_of(WAKEGATE_FAULTS_ACCEPT);
    return error ? failed(error) : opened(__real_accept4(listener, name, size, flags));
}

ssize_t __real_recv(int descriptor, void *room, size_t count, int flags);
ssize_t __wrap_recv(int descriptor, void *room, size_t count, int flags) {
    int error = fault_of(WAKEGATE_FAULTS_RECEIVE);
    if (error > 0) return failed(error);
    if (!(flags & MSG_PEEK)) count = error ? 1 : bytes_of(count, false);
    return __real_recv(descriptor, room, count, flags);
}

ssize_t __real_send(int descriptor, const void *bytes, size_t count, int flags);
ssize_t __wrap_send(int descriptor, const void *bytes, size_t count, int flags) {
    int error = fault_of(WAKEGATE_FAULTS_SEND);
    if (error > 0) return failed(error);
    size_t taken = error ? 1 : bytes_of(count, true);
    return taken || !count ? __real_send(descriptor, bytes, taken, flags) : failed(EAGAIN);
}

int __real_close(int descriptor);
int __wrap_close(int descriptor) {
    int error = fault_of(WAKEGATE_FAULTS_CLOSE);
    struct wakegate_faults *faults = current;
    if (faults && descriptor >= 0 && descriptor < DESCRIPTORS_MAX) {
        pthread_mutex_lock(&faults->lock);
        if (faults->is_open[descriptor]) faults->open--;
        else faults->wrong_closes++;
        faults->is_open[descriptor] = false;
        pthread_mutex_unlock(&faults->lock);
    }
    // Linux has closed the descriptor, whatever it returns.
    int result = __real_close(descriptor);
    return error ? failed(error) : result;
}

int __real_shutdown(int descriptor, int how);
int __wrap_shutdown(int descriptor, int how) {
    int error = fault_of(WAKEGATE_FAULTS_SHUTDOWN);
    return error ? failed(error) : __real_shutdown(descriptor, how);
}

int __real_setsockopt(int descriptor, int level, int name, const void *value, socklen_t size);
int __wrap_setsockopt(int descriptor, int level, int name, const void *value, socklen_t size) {
    int error = fault_of(WAKEGATE_FAULTS_OPTION);
    return error ? failed(error) : __real_setsockopt(descriptor, level, name, value, size);
}

int __real_socket(int family, int type, int protocol);
int __wrap_socket(int family, int type, int protocol) {
    int error = fault_of(WAKEGATE_FAULTS_OPEN);
    return error ? failed(error) : opened(__real_socket(family, type, protocol));
}

int __real_bind(int descriptor, const struct sockaddr *name, socklen_t size);
int __wrap_bind(int descriptor, const struct sockaddr *name, socklen_t size) {
    int error = fault_of(WAKEGATE_FAULTS_BIND);
    return error ? failed(error) : __real_bind(descriptor, name, size);
}

int __real_listen(int descriptor, int backlog);
int __wrap_listen(int descriptor, int backlog) {
    int error = fault_of(WAKEGATE_FAULTS_LISTEN);
    return error ? failed(error) : __real_listen(descriptor, backlog);
}

// MARK: Files

int __real_link(const char *path, const char *other);
int __wrap_link(const char *path, const char *other) {
    int error = fault_of(WAKEGATE_FAULTS_LINK);
    return error ? failed(error) : __real_link(path, other);
}

int __real_renameat2(int folder, const char *path, int other_folder, const char *other, unsigned flags);
int __wrap_renameat2(int folder, const char *path, int other_folder, const char *other, unsigned flags) {
    int error = fault_of(WAKEGATE_FAULTS_LINK);
    return error ? failed(error) : __real_renameat2(folder, path, other_folder, other, flags);
}

int __real_fsync(int descriptor);
int __wrap_fsync(int descriptor) {
    int error = fault_of(WAKEGATE_FAULTS_SYNC);
    return error ? failed(error) : __real_fsync(descriptor);
}

// MARK: Waiting

int __real_epoll_create1(int flags);
int __wrap_epoll_create1(int flags) {
    int error = fault_of(WAKEGATE_FAULTS_OPEN);
    return error ? failed(error) : opened(__real_epoll_create1(flags));
}

int __real_epoll_ctl(int poll, int operation, int descriptor, struct epoll_event *event);
int __wrap_epoll_ctl(int poll, int operation, int descriptor, struct epoll_event *event) {
    int error = fault_of(WAKEGATE_FAULTS_WATCH);
    return error ? failed(error) : __real_epoll_ctl(poll, operation, descriptor, event);
}

int __real_epoll_wait(int poll, struct epoll_event *events, int count, int milliseconds);
int __wrap_epoll_wait(int poll, struct epoll_event *events, int count, int milliseconds) {
    int error = fault_of(WAKEGATE_FAULTS_WAIT);
    return error ? failed(error) : __real_epoll_wait(poll, events, count, milliseconds);
}

int __real_poll(struct pollfd *entries, nfds_t count, int milliseconds);
int __wrap_poll(struct pollfd *entries, nfds_t count, int milliseconds) {
    int error = fault_of(WAKEGATE_FAULTS_WAIT);
    return error ? failed(error) : __real_poll(entries, count, milliseconds);
}

int __real_eventfd(unsigned value, int flags);
int __wrap_eventfd(unsigned value, int flags) {
    int error = fault_of(WAKEGATE_FAULTS_OPEN);
    return error ? failed(error) : opened(__real_eventfd(value, flags));
}

int __real_eventfd_read(int descriptor, eventfd_t *value);
int __wrap_eventfd_read(int descriptor, eventfd_t *value) {
    int error = fault_of(WAKEGATE_FAULTS_CLEAR);
    return error ? failed(error) : __real_eventfd_read(descriptor, value);
}

int __wrap_clock_gettime(clockid_t clock, struct timespec *time) {
    struct wakegate_faults *faults = current;
    if (!faults || clock != CLOCK_MONOTONIC) return __real_clock_gettime(clock, time);
    pthread_mutex_lock(&faults->lock);
    *time = faults->now;
    pthread_mutex_unlock(&faults->lock);
    return 0;
}

int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *value);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *value) {
    int error = fault_of(WAKEGATE_FAULTS_THREAD);
    return error ? error : __real_pthread_create(thread, attributes, run, value);
}

// MARK: TLS

// The error by which OpenSSL reports that memory is exhausted.
static int failed_tls(int error) {
    ERR_raise(ERR_LIB_SSL, ERR_R_MALLOC_FAILURE);
    return failed(error);
}

SSL *__real_SSL_new(SSL_CTX *context);
SSL *__wrap_SSL_new(SSL_CTX *context) {
    int error = fault_of(WAKEGATE_FAULTS_TLS_BEGIN);
    if (!error) return __real_SSL_new(context);
    failed_tls(error);
    return NULL;
}

int __real_SSL_do_handshake(SSL *ssl);
int __wrap_SSL_do_handshake(SSL *ssl) {
    int error = fault_of(WAKEGATE_FAULTS_TLS_HANDSHAKE);
    return error ? failed_tls(error) : __real_SSL_do_handshake(ssl);
}

int __real_SSL_read(SSL *ssl, void *room, int count);
int __wrap_SSL_read(SSL *ssl, void *room, int count) {
    int error = fault_of(WAKEGATE_FAULTS_TLS_READ);
    return error ? failed_tls(error) : __real_SSL_read(ssl, room, count);
}

int __real_SSL_write(SSL *ssl, const void *bytes, int count);
int __wrap_SSL_write(SSL *ssl, const void *bytes, int count) {
    int error = fault_of(WAKEGATE_FAULTS_TLS_WRITE);
    return error ? failed_tls(error) : __real_SSL_write(ssl, bytes, count);
}
