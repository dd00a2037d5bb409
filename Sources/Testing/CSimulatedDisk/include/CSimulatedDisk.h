// A disk in memory below SQLite that fails and loses power on command.
//
// Every file has the content that programs read (the page cache) and the content on the platter. A sync writes the
// first to the second. A file's name is durable once its folder is synced. SQLite's Unix layer does that at the first
// sync of a new journal or log and at a delete that requests it; this layer does it at the same times.
#ifndef WAKEGATE_CSIMULATEDDISK_H
#define WAKEGATE_CSIMULATEDDISK_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct wakegate_disk wakegate_disk;

// The kinds of operations, as bits: a plan has those that it counts.
enum {
    WAKEGATE_DISK_WRITE = 1,
    WAKEGATE_DISK_TRUNCATE = 2,
    WAKEGATE_DISK_SYNC = 4,
    // Opening a file that did not exist.
    WAKEGATE_DISK_CREATE = 8,
    WAKEGATE_DISK_DELETE = 16,
    WAKEGATE_DISK_READ = 32,
    // Operations that need space the disk may not have: writes beyond a file's end, new files, shared memory.
    WAKEGATE_DISK_GROW = 64,
};

// The fault of the operation that a plan selects.
enum {
    WAKEGATE_DISK_NO_SPACE,
    WAKEGATE_DISK_IO_ERROR,
    // The power is lost in the middle of the operation.
    WAKEGATE_DISK_POWER_LOSS,
    // The process dies before the operation; the page cache survives.
    WAKEGATE_DISK_KILL,
};

// Creates a disk and registers it with SQLite under `vfs_name`, which must not be in use.
//
// `seed` determines the events between syncs: which sectors reach the platter early, how much of a failed write or sync
// was done, and whether the page cache loses what a failed sync lost. With 0 there are none.
// Returns NULL if memory is exhausted or the name cannot be registered.
wakegate_disk *wakegate_disk_make(const char *vfs_name, uint64_t seed);

// Unregisters the name. Files that are still open stay usable; closing the last one frees the disk.
void wakegate_disk_free(wakegate_disk *disk);

// Restarts the count: operation `nth` (from 0) of `kinds` meets `fault`, and all later ones if `lasts`. A negative
// `nth` only counts. `seed` determines the effect of a power loss, as in wakegate_disk_crash.
void wakegate_disk_plan(wakegate_disk *disk, int64_t nth, unsigned kinds, int fault, bool lasts, uint64_t seed);

// Returns the number of operations counted since the last plan.
int64_t wakegate_disk_operations(wakegate_disk *disk);

// Returns the number of operations that failed since the last plan.
int64_t wakegate_disk_faults(wakegate_disk *disk);

// Describes the first operation that failed since the last plan; empty if none did. Always ends in NUL.
void wakegate_disk_describe_fault(wakegate_disk *disk, char *text, size_t count);

// Makes all names durable, like a sync of the folder. Counts as a sync. Returns false if it failed.
bool wakegate_disk_sync_folder(wakegate_disk *disk);

// Ends every open file: its handle fails from now on, and its locks are released.
//
// `keeps_cache`: the process was killed, and the page cache survives. Otherwise the power was lost: with seed 0 all
// unsynced data is gone; with another seed some unsynced sectors survive, some of them torn, and each unsynced name may
// survive.
void wakegate_disk_crash(wakegate_disk *disk, uint64_t seed, bool keeps_cache);

// Returns the size of a file as programs read it; -1 if there is none.
int64_t wakegate_disk_file_size(wakegate_disk *disk, const char *path);

// Copies bytes of a file; false if it does not have all of them.
bool wakegate_disk_peek(wakegate_disk *disk, const char *path, int64_t offset, void *bytes, size_t count);

// Changes bytes of a file in the page cache and on the platter; false if it does not have all of them.
bool wakegate_disk_poke(wakegate_disk *disk, const char *path, int64_t offset, const void *bytes, size_t count);

#endif
