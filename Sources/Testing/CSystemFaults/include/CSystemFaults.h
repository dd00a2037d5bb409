// System calls, and calls of OpenSSL, that fail on command, and a clock that stands.
//
// The linker's option --wrap leads what the tests' program itself calls here; what libraries call goes to the system as
// ever. A thread that has joined some faults has its calls counted, and the ones that a plan names fail. All other
// threads' calls go through.
#ifndef WAKEGATE_CSYSTEMFAULTS_H
#define WAKEGATE_CSYSTEMFAULTS_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct wakegate_faults wakegate_faults;

// The steps that a plan may name.
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
    // SSL_new
    WAKEGATE_FAULTS_TLS_BEGIN,
    WAKEGATE_FAULTS_TLS_HANDSHAKE,
    WAKEGATE_FAULTS_TLS_READ,
    WAKEGATE_FAULTS_TLS_WRITE,
    WAKEGATE_FAULTS_STEPS,
};

// In the place of an error: one byte alone is taken or given. A peek finds what is there.
enum { WAKEGATE_FAULTS_ONE_BYTE = -1 };

// Returns NULL when there is no memory.
wakegate_faults *wakegate_faults_make(void);

// No thread may be joined any more.
void wakegate_faults_free(wakegate_faults *faults);

// From now on the calling thread's calls are counted and may fail; NULL lets it go. Its monotonic clock stands at the
// moment at which the first thread joined.
void wakegate_faults_join(wakegate_faults *faults);

// Counts anew: calls `nth` (from 0) to `nth + times - 1` of `step` fail with `error`. A `times` of 0 fails none.
void wakegate_faults_plan(wakegate_faults *faults, int step, int64_t nth, int64_t times, int error);

// Sockets take `bytes` at a time at most, and every other time nothing at all; they give as many. 0: as they like.
void wakegate_faults_slow(wakegate_faults *faults, size_t bytes);

// Has time pass on the clock of joined threads.
void wakegate_faults_advance(wakegate_faults *faults, int64_t milliseconds);

// Calls of a step that were counted since the last plan.
int64_t wakegate_faults_calls(wakegate_faults *faults, int step);

// Calls that failed since the last plan.
int64_t wakegate_faults_met(wakegate_faults *faults);

// Descriptors that joined threads have opened, and have not closed.
int64_t wakegate_faults_open(wakegate_faults *faults);

// How often joined threads have closed what was not open: another's descriptor may have had its number.
int64_t wakegate_faults_wrong_closes(wakegate_faults *faults);

#endif
