// The disk: names, files with their cached and durable content, locks, shared memory, faults.
#ifndef WAKEGATE_CSIMULATEDDISK_MODEL_H
#define WAKEGATE_CSIMULATEDDISK_MODEL_H
#include <CSimulatedDisk.h>
#include <pthread.h>
#include <sqlite3.h>

enum { SECTOR_BYTES = 512, SHARED_LOCKS = SQLITE_SHM_NLOCK };

struct handle;

// The memory that the connections to one file share for its write-ahead log.
struct shared_memory {
    int references;
    int count;
    uint8_t **regions;
    unsigned shared[SHARED_LOCKS];
    struct handle *exclusive[SHARED_LOCKS];
};

// A file without its name. All three arrays have `capacity` bytes. Bytes beyond a size are zero in its array, except
// that sectors may reach the platter before the durable size does.
struct inode {
    int references;
    size_t capacity;
    size_t size, durable_size;
    uint8_t *cached, *durable;
    // Nonzero for each sector that differs from the platter, so that the next sync must write it.
    uint8_t *is_dirty;
    int shared_locks;
    // The handle with a lock above SHARED.
    struct handle *writer;
    bool is_pending;
    struct shared_memory *memory;
};

struct entry {
    struct entry *next;
    char *name;
    // The files of the name now and after a power loss, or NULL.
    struct inode *now, *durable;
};

struct wakegate_disk {
    sqlite3_vfs vfs;
    // The file system layer that provides randomness and time.
    sqlite3_vfs *machine;
    char *name;
    // Guards all fields below, and everything they point to.
    pthread_mutex_t lock;
    struct entry *entries;
    // The number of open files, plus one for the owner.
    int references;
    // The current epoch; files opened in another one are dead.
    uint64_t epoch;
    uint64_t random;
    bool is_random;
    int last_errno;
    struct {
        int64_t nth;
        unsigned kinds;
        int fault;
        bool lasts;
        uint64_t seed;
    } plan;
    int64_t operations, faults;
    char first_fault[200];
};

// An open file of SQLite.
struct handle {
    sqlite3_file base;
    struct wakegate_disk *disk;
    struct inode *inode;
    struct entry *entry;
    uint64_t epoch;
    int level;
    bool is_read_only, syncs_folder, deletes_on_close, is_temporary;
    struct shared_memory *memory;
    unsigned shared_mask, exclusive_mask;
};

// All of these functions must be called with the disk's lock held.

uint64_t disk_random(uint64_t *state);
struct entry *disk_find(struct wakegate_disk *disk, const char *name);
struct entry *disk_make_entry(struct wakegate_disk *disk, const char *name);
struct inode *inode_make(void);
void inode_release(struct inode *inode);
bool inode_write(struct inode *inode, size_t offset, const void *bytes, size_t count);
void inode_truncate(struct inode *inode, size_t size);
void inode_sync(struct inode *inode);
// Fails a sync: the dirty sectors count as clean, but are not on the platter.
void inode_fail_sync(struct wakegate_disk *disk, struct inode *inode);
// Writes some of the new sectors to the platter before a sync.
void inode_write_early(struct wakegate_disk *disk, struct inode *inode, size_t offset, size_t count);
void disk_sync_folder(struct wakegate_disk *disk);
void disk_crash(struct wakegate_disk *disk, uint64_t seed, bool keeps_cache);
// Releases a reference to the disk, and the lock.
void disk_release(struct wakegate_disk *disk);
void memory_release(struct shared_memory *memory);

// Counts an operation. Returns whether it meets a fault, and sets `fault`.
bool disk_meets_fault(
    struct wakegate_disk *disk, unsigned kinds, const char *verb, const struct entry *entry, int64_t offset, int64_t count,
    int *fault
);

// Sets the functions that SQLite calls.
void vfs_fill(struct wakegate_disk *disk);

#endif
