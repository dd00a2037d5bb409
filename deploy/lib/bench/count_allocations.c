/* Preloaded into a program, counts its calls that allocate memory, and the bytes that it holds: in the file that
   ALLOCATIONS names, eight bytes each. */
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);
extern void __libc_free(void *);

static _Atomic long uncounted[2];
static _Atomic long *counts = uncounted;

static void *taken(void *piece) {
    atomic_fetch_add_explicit(&counts[0], 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&counts[1], malloc_usable_size(piece), memory_order_relaxed);
    return piece;
}

static void given_back(void *piece) {
    atomic_fetch_sub_explicit(&counts[1], malloc_usable_size(piece), memory_order_relaxed);
}

__attribute__((constructor)) static void begin(void) {
    const char *path = getenv("ALLOCATIONS");
    int file = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    if (file < 0) return;
    void *memory = mmap(0, sizeof uncounted, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (memory != MAP_FAILED) counts = memory;
    close(file);
}

void *malloc(size_t size) { return taken(__libc_malloc(size)); }

void *calloc(size_t number, size_t size) { return taken(__libc_calloc(number, size)); }

void *realloc(void *piece, size_t size) {
    given_back(piece);
    void *moved = __libc_realloc(piece, size);
    /* Without memory for more, the piece stays as it is. */
    if (!moved && size) taken(piece);
    return moved ? taken(moved) : moved;
}

void free(void *piece) {
    given_back(piece);
    __libc_free(piece);
}

void *memalign(size_t alignment, size_t size) { return taken(__libc_memalign(alignment, size)); }

void *aligned_alloc(size_t alignment, size_t size) { return memalign(alignment, size); }

int posix_memalign(void **piece, size_t alignment, size_t size) {
    void *made = memalign(alignment, size);
    if (!made) return ENOMEM;
    *piece = made;
    return 0;
}
