// A disk in memory below SQLite, which fails and loses power on command.
//
// Every file has what programs read (the page cache) and what is on the platter. A sync brings the first to the second.
// A file's name is durable once its folder was synced, which SQLite's layer for Unix does at the first sync of a new
// journal or log and at a delete that asks for it; this layer does it at the same moments.
#ifndef WAKEGATE_CSIMULATEDDISK_H
#define WAKEGATE_CSIMULATEDDISK_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct wakegate_disk wakegate_disk;

// Kinds of operations, as bits: a plan names those that it counts.
enum {
    WAKEGATE_DISK_WRITE = 1,
    WAKEGATE_DISK_TRUNCATE = 2,
    WAKEGATE_DISK_SYNC = 4,
    // Opening a file that was not there.
    WAKEGATE_DISK_CREATE = 8,
    WAKEGATE_DISK_DELETE = 16,
    WAKEGATE_DISK_READ = 32,
    // What needs room that the disk may not have: writes beyond a file's end, new files, shared memory.
    WAKEGATE_DISK_GROW = 64,
};

// What happens at the operation a plan names.
enum {
    WAKEGATE_DISK_NO_SPACE,
    WAKEGATE_DISK_IO_ERROR,
    // The power is lost in the middle of the operation.
    WAKEGATE_DISK_POWER_LOSS,
    // The process dies before the operation; the page cache lives on.
    WAKEGATE_DISK_KILL,
};

// Makes a disk and registers it with SQLite under `vfs_name`, which no other may have.
//
// `seed` decides what happens between syncs: which sectors reach the platter early, how much of a failed write or sync
// was done, and whether the page cache forgets what a failed sync lost. With 0 nothing of the kind happens.
// Returns NULL when there is no memory or the name cannot be registered.
wakegate_disk *wakegate_disk_make(const char *vfs_name, uint64_t seed);

// Takes the name back. Files that are still open stay usable; the last to be closed frees the disk.
void wakegate_disk_free(wakegate_disk *disk);

// Starts counting anew: operation `nth` (from 0) of `kinds` meets `fault`, and all later ones when `lasts`.
// A negative `nth` counts and fails nothing. `seed` decides what a loss of power leaves, as in wakegate_disk_crash.
void wakegate_disk_plan(wakegate_disk *disk, int64_t nth, unsigned kinds, int fault, bool lasts, uint64_t seed);

// Operations counted since the last plan.
int64_t wakegate_disk_operations(wakegate_disk *disk);

// Operations that failed since the last plan.
int64_t wakegate_disk_faults(wakegate_disk *disk);

// Describes the first operation that failed since the last plan; empty when none did. Always ends in NUL.
void wakegate_disk_describe_fault(wakegate_disk *disk, char *text, size_t count);

// Makes all names durable, as a sync of the folder does. It counts as a sync. Returns false when it failed.
bool wakegate_disk_sync_folder(wakegate_disk *disk);

// Ends every open file: its handle fails from now on, and its locks are gone.
//
// `keeps_cache`: the process was killed, and the page cache lives on. Otherwise the power was lost: with seed 0 all that
// was not synced is gone; with another seed a part of the unsynced sectors is there, some of them torn, and unsynced
// names are there or not.
void wakegate_disk_crash(wakegate_disk *disk, uint64_t seed, bool keeps_cache);

// The bytes of a file as programs read them; -1 when there is none.
int64_t wakegate_disk_file_size(wakegate_disk *disk, const char *path);

// Copies bytes of a file; false when they are not all there.
bool wakegate_disk_peek(wakegate_disk *disk, const char *path, int64_t offset, void *bytes, size_t count);

// Changes bytes of a file in the page cache and on the platter; false when they are not all there.
bool wakegate_disk_poke(wakegate_disk *disk, const char *path, int64_t offset, const void *bytes, size_t count);

#endif
