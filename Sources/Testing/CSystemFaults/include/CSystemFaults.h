// System calls and OpenSSL calls that fail on command, and a clock that stands.
//
// The linker's option --wrap redirects the calls of the test program itself to this code; the calls of libraries go to
// the system as usual. A thread that has joined some faults has its calls counted, and the calls that a plan selects
// fail. The calls of all other threads proceed normally.
#ifndef WAKEGATE_CSYSTEMFAULTS_H
#define WAKEGATE_CSYSTEMFAULTS_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct wakegate_faults wakegate_faults;

// The steps that a plan may select.
enum {
    WAKEGATE_FAULTS_ACCEPT,
    WAKEGATE_FAULTS_RECEIVE,
    WAKEGATE_FAULTS_SEND,
    // epoll_ctl
    WAKEGATE_FAULTS_WATCH,
    // epoll_wait, and poll
    WAKEGATE_FAULTS_WAIT,
    WAKEGATE_FAULTS_CLOSE,
    WAKEGATE_FAULTS_SHUTDOWN,
    // setsockopt
    WAKEGATE_FAULTS_OPTION,
    // eventfd_read
    WAKEGATE_FAULTS_CLEAR,
    // socket, eventfd, epoll_create1
    WAKEGATE_FAULTS_OPEN,
    WAKEGATE_FAULTS_BIND,
    WAKEGATE_FAULTS_LISTEN,
    // pthread_create
    WAKEGATE_FAULTS_THREAD,
    // link, renameat2
    WAKEGATE_FAULTS_LINK,
    // fsync
    WAKEGATE_FAULTS_SYNC,
    // SSL_new
    WAKEGATE_FAULTS_TLS_BEGIN,
    WAKEGATE_FAULTS_TLS_HANDSHAKE,
    WAKEGATE_FAULTS_TLS_READ,
    WAKEGATE_FAULTS_TLS_WRITE,
    WAKEGATE_FAULTS_STEPS,
};

// A value instead of an error: only one byte is transferred. A peek returns all available bytes.
enum { WAKEGATE_FAULTS_ONE_BYTE = -1 };

// Returns NULL if memory is exhausted.
wakegate_faults *wakegate_faults_make(void);

// Frees the faults; no thread may be joined any more.
void wakegate_faults_free(wakegate_faults *faults);

// Starts to count the calling thread's calls, which may fail; NULL makes the thread leave. Its monotonic clock stands
// at the time when the first thread joined.
void wakegate_faults_join(wakegate_faults *faults);

// Restarts the count: calls `nth` (from 0) to `nth + times - 1` of `step` fail with `error`. A `times` of 0 fails none.
void wakegate_faults_plan(wakegate_faults *faults, int step, int64_t nth, int64_t times, int error);

// Limits sockets to `bytes` bytes per call; every other send transfers none. 0 removes the limit.
void wakegate_faults_slow(wakegate_faults *faults, size_t bytes);

// Advances the clock of joined threads.
void wakegate_faults_advance(wakegate_faults *faults, int64_t milliseconds);

// Returns the number of calls of a step since the last plan.
int64_t wakegate_faults_calls(wakegate_faults *faults, int step);

// Returns the number of calls that failed since the last plan.
int64_t wakegate_faults_met(wakegate_faults *faults);

// Returns the number of descriptors that joined threads have opened and not closed.
int64_t wakegate_faults_open(wakegate_faults *faults);

// Returns how often joined threads closed a descriptor that was not open: another one may have had its number.
int64_t wakegate_faults_wrong_closes(wakegate_faults *faults);

#endif
