#ifndef WAKEGATE_CTHREADS_SHIM_H
#define WAKEGATE_CTHREADS_SHIM_H
// Without _GNU_SOURCE: with it the system's types differ from those of the Glibc module.
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>

// Names the calling thread for the system's process tools; at most 15 bytes of the name are kept.
static inline void wakegate_name_thread(const char *name) { prctl(PR_SET_NAME, name, 0, 0, 0); }

#endif
