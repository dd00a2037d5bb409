/* Preloaded into a Swift program that runs under valgrind: its main thread waits here. libdispatch's own way of waiting
   hands sigsuspend(2) a mask in read-only memory, to which valgrind 3.19 writes. */
#include <unistd.h>

void dispatch_main(void) {
    for (;;) pause();
}
