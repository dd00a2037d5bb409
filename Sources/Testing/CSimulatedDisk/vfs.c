// The disk's interface to SQLite: https://www.sqlite.org/vfs.html
#include "model.h"
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

static struct handle *locked(sqlite3_file *file) {
    struct handle *handle = (struct handle *)file;
    pthread_mutex_lock(&handle->disk->lock);
    return handle;
}

static int unlocked(struct handle *handle, int code) {
    pthread_mutex_unlock(&handle->disk->lock);
    return code;
}

static bool is_dead(struct handle *handle) {
    if (handle->epoch == handle->disk->epoch) return false;
    handle->disk->last_errno = EIO;
    return true;
}

// Counts an operation on an open file; temporary files are not counted.
static bool meets_fault(struct handle *handle, unsigned kinds, const char *verb, int64_t offset, int64_t count, int *fault) {
    if (handle->is_temporary) return false;
    return disk_meets_fault(handle->disk, kinds, verb, handle->entry, offset, count, fault);
}

// MARK: Content

static int disk_read(sqlite3_file *file, void *bytes, int count, sqlite3_int64 offset) {
    struct handle *handle = locked(file);
    int fault;
    if (is_dead(handle)) return unlocked(handle, SQLITE_IOERR_READ);
    if (meets_fault(handle, WAKEGATE_DISK_READ, "read", offset, count, &fault)) {
        if (fault == WAKEGATE_DISK_POWER_LOSS) disk_crash(handle->disk, handle->disk->plan.seed, false);
        return unlocked(handle, SQLITE_IOERR_READ);
    }
    size_t size = handle->inode->size;
    size_t start = (size_t)offset < size ? (size_t)offset : size;
    size_t there = size - start < (size_t)count ? size - start : (size_t)count;
    if (there) memcpy(bytes, handle->inode->cached + start, there);
    if (there == (size_t)count) return unlocked(handle, SQLITE_OK);
    memset((uint8_t *)bytes + there, 0, (size_t)count - there);
    return unlocked(handle, SQLITE_IOERR_SHORT_READ);
}

static int fail_write(struct handle *handle, const void *bytes, size_t count, size_t offset, int fault) {
    struct wakegate_disk *disk = handle->disk;
    if (fault == WAKEGATE_DISK_KILL) return SQLITE_IOERR_WRITE;
    if (fault == WAKEGATE_DISK_POWER_LOSS) {
        inode_write(handle->inode, offset, bytes, count);
        disk_crash(disk, disk->plan.seed, false);
        return SQLITE_IOERR_WRITE;
    }
    size_t done = disk->is_random ? disk_random(&disk->random) % (count + 1) : 0;
    inode_write(handle->inode, offset, bytes, done);
    return fault == WAKEGATE_DISK_NO_SPACE ? SQLITE_FULL : SQLITE_IOERR_WRITE;
}

static int disk_write(sqlite3_file *file, const void *bytes, int count, sqlite3_int64 offset) {
    struct handle *handle = locked(file);
    int fault;
    if (is_dead(handle)) return unlocked(handle, SQLITE_IOERR_WRITE);
    if (handle->is_read_only) return unlocked(handle, SQLITE_READONLY);
    unsigned kinds = WAKEGATE_DISK_WRITE;
    if ((size_t)offset + (size_t)count > handle->inode->size) kinds |= WAKEGATE_DISK_GROW;
    if (meets_fault(handle, kinds, "write", offset, count, &fault)) {
        return unlocked(handle, fail_write(handle, bytes, (size_t)count, (size_t)offset, fault));
    }
    if (!inode_write(handle->inode, (size_t)offset, bytes, (size_t)count)) return unlocked(handle, SQLITE_FULL);
    inode_write_early(handle->disk, handle->inode, (size_t)offset, (size_t)count);
    return unlocked(handle, SQLITE_OK);
}

static int disk_truncate(sqlite3_file *file, sqlite3_int64 size) {
    struct handle *handle = locked(file);
    int fault;
    if (is_dead(handle)) return unlocked(handle, SQLITE_IOERR_TRUNCATE);
    if (meets_fault(handle, WAKEGATE_DISK_TRUNCATE, "truncation", size, 0, &fault)) {
        if (fault == WAKEGATE_DISK_POWER_LOSS) {
            inode_truncate(handle->inode, (size_t)size);
            disk_crash(handle->disk, handle->disk->plan.seed, false);
        }
        return unlocked(handle, SQLITE_IOERR_TRUNCATE);
    }
    inode_truncate(handle->inode, (size_t)size);
    return unlocked(handle, SQLITE_OK);
}

static int disk_sync(sqlite3_file *file, int flags) {
    (void)flags;
    struct handle *handle = locked(file);
    struct wakegate_disk *disk = handle->disk;
    int fault;
    if (is_dead(handle)) return unlocked(handle, SQLITE_IOERR_FSYNC);
    if (meets_fault(handle, WAKEGATE_DISK_SYNC, "sync", 0, (int64_t)handle->inode->size, &fault)) {
        if (fault == WAKEGATE_DISK_POWER_LOSS) {
            disk_crash(disk, disk->plan.seed, false);
        } else if (fault != WAKEGATE_DISK_KILL) {
            inode_fail_sync(disk, handle->inode);
        }
        return unlocked(handle, SQLITE_IOERR_FSYNC);
    }
    inode_sync(handle->inode);
    if (handle->syncs_folder) disk_sync_folder(disk);
    handle->syncs_folder = false;
    return unlocked(handle, SQLITE_OK);
}

static int disk_file_size(sqlite3_file *file, sqlite3_int64 *size) {
    struct handle *handle = locked(file);
    if (is_dead(handle)) return unlocked(handle, SQLITE_IOERR_FSTAT);
    *size = (sqlite3_int64)handle->inode->size;
    return unlocked(handle, SQLITE_OK);
}

// MARK: Locks of a file

static int disk_lock(sqlite3_file *file, int level) {
    struct handle *handle = locked(file);
    struct inode *inode = handle->inode;
    if (is_dead(handle)) return unlocked(handle, SQLITE_IOERR_LOCK);
    if (handle->level >= level) return unlocked(handle, SQLITE_OK);
    if (level == SQLITE_LOCK_SHARED) {
        if (inode->is_pending) return unlocked(handle, SQLITE_BUSY);
        inode->shared_locks++;
        handle->level = level;
        return unlocked(handle, SQLITE_OK);
    }
    if (inode->writer && inode->writer != handle) return unlocked(handle, SQLITE_BUSY);
    inode->writer = handle;
    if (level == SQLITE_LOCK_RESERVED) {
        handle->level = level;
        return unlocked(handle, SQLITE_OK);
    }
    // No new readers are admitted from here on; current readers may finish.
    inode->is_pending = true;
    handle->level = SQLITE_LOCK_PENDING;
    if (inode->shared_locks > 1) return unlocked(handle, SQLITE_BUSY);
    handle->level = SQLITE_LOCK_EXCLUSIVE;
    return unlocked(handle, SQLITE_OK);
}

static int disk_unlock(sqlite3_file *file, int level) {
    struct handle *handle = locked(file);
    if (is_dead(handle) || handle->level <= level) return unlocked(handle, SQLITE_OK);
    if (handle->inode->writer == handle) {
        handle->inode->writer = NULL;
        handle->inode->is_pending = false;
    }
    if (level == SQLITE_LOCK_NONE) handle->inode->shared_locks--;
    handle->level = level;
    return unlocked(handle, SQLITE_OK);
}

static int disk_check_reserved_lock(sqlite3_file *file, int *is_reserved) {
    struct handle *handle = locked(file);
    *is_reserved = !is_dead(handle) && handle->inode->writer != NULL;
    return unlocked(handle, SQLITE_OK);
}

// MARK: Memory that connections share

void memory_release(struct shared_memory *memory) {
    if (--memory->references > 0) return;
    for (int region = 0; region < memory->count; region++) free(memory->regions[region]);
    free(memory->regions);
    free(memory);
}

static bool attach(struct handle *handle) {
    if (handle->memory) return true;
    if (!handle->inode->memory) {
        handle->inode->memory = calloc(1, sizeof(struct shared_memory));
        if (!handle->inode->memory) return false;
        handle->inode->memory->references = 1;
    }
    handle->memory = handle->inode->memory;
    handle->memory->references++;
    return true;
}

static int disk_shm_map(sqlite3_file *file, int region, int size, int extends, void volatile **place) {
    struct handle *handle = locked(file);
    *place = NULL;
    if (is_dead(handle)) return unlocked(handle, SQLITE_IOERR_SHMMAP);
    if (!attach(handle)) return unlocked(handle, SQLITE_IOERR_NOMEM);
    struct shared_memory *memory = handle->memory;
    if (region >= memory->count) {
        if (!extends) return unlocked(handle, SQLITE_OK);
        int fault;
        if (meets_fault(handle, WAKEGATE_DISK_GROW, "growth of the shared memory", region, size, &fault)) {
            if (fault == WAKEGATE_DISK_POWER_LOSS) disk_crash(handle->disk, handle->disk->plan.seed, false);
            return unlocked(handle, SQLITE_IOERR_SHMSIZE);
        }
        uint8_t **regions = realloc(memory->regions, sizeof *regions * (size_t)(region + 1));
        if (!regions) return unlocked(handle, SQLITE_IOERR_NOMEM);
        memory->regions = regions;
        while (memory->count <= region) {
            regions[memory->count] = calloc(1, (size_t)size);
            if (!regions[memory->count]) return unlocked(handle, SQLITE_IOERR_NOMEM);
            memory->count++;
        }
    }
    *place = memory->regions[region];
    return unlocked(handle, SQLITE_OK);
}

static int unlock_memory(struct handle *handle, int first, int count) {
    struct shared_memory *memory = handle->memory;
    for (int slot = first; memory && slot < first + count; slot++) {
        unsigned bit = 1u << slot;
        if (handle->shared_mask & bit) memory->shared[slot]--;
        if (handle->exclusive_mask & bit) memory->exclusive[slot] = NULL;
        handle->shared_mask &= ~bit;
        handle->exclusive_mask &= ~bit;
    }
    return SQLITE_OK;
}

static int disk_shm_lock(sqlite3_file *file, int first, int count, int flags) {
    struct handle *handle = locked(file);
    if (flags & SQLITE_SHM_UNLOCK) return unlocked(handle, unlock_memory(handle, first, count));
    if (is_dead(handle) || !handle->memory) return unlocked(handle, SQLITE_IOERR_SHMLOCK);
    struct shared_memory *memory = handle->memory;
    bool is_shared = (flags & SQLITE_SHM_SHARED) != 0;
    for (int slot = first; slot < first + count; slot++) {
        bool isTaken = memory->exclusive[slot] && memory->exclusive[slot] != handle;
        unsigned own = (handle->shared_mask >> slot) & 1;
        if (!is_shared && memory->shared[slot] > own) isTaken = true;
        if (isTaken) return unlocked(handle, SQLITE_BUSY);
    }
    for (int slot = first; slot < first + count; slot++) {
        unsigned bit = 1u << slot;
        if (is_shared) {
            if (!(handle->shared_mask & bit)) memory->shared[slot]++;
            handle->shared_mask |= bit;
        } else {
            memory->exclusive[slot] = handle;
            handle->exclusive_mask |= bit;
        }
    }
    return unlocked(handle, SQLITE_OK);
}

static void disk_shm_barrier(sqlite3_file *file) {
    __sync_synchronize();
    unlocked(locked(file), SQLITE_OK);
}

static int detach(struct handle *handle) {
    struct shared_memory *memory = handle->memory;
    if (!memory) return SQLITE_OK;
    unlock_memory(handle, 0, SHARED_LOCKS);
    handle->memory = NULL;
    // The last user removes the memory, as the next one would create it again. One reference is the file's own.
    if (handle->inode->memory == memory && memory->references == 2) {
        handle->inode->memory = NULL;
        memory_release(memory);
    }
    memory_release(memory);
    return SQLITE_OK;
}

static int disk_shm_unmap(sqlite3_file *file, int deletes) {
    (void)deletes;
    struct handle *handle = locked(file);
    return unlocked(handle, detach(handle));
}

// MARK: The rest of a file

static int disk_close(sqlite3_file *file) {
    struct handle *handle = locked(file);
    struct wakegate_disk *disk = handle->disk;
    detach(handle);
    if (!is_dead(handle)) {
        if (handle->inode->writer == handle) {
            handle->inode->writer = NULL;
            handle->inode->is_pending = false;
        }
        if (handle->level > SQLITE_LOCK_NONE) handle->inode->shared_locks--;
        if (handle->deletes_on_close && handle->entry && handle->entry->now == handle->inode) {
            handle->entry->now = NULL;
            inode_release(handle->inode);
        }
    }
    inode_release(handle->inode);
    file->pMethods = NULL;
    disk_release(disk);
    return SQLITE_OK;
}

static int disk_file_control(sqlite3_file *file, int operation, void *argument) {
    (void)file, (void)operation, (void)argument;
    return SQLITE_NOTFOUND;
}

static int disk_sector_size(sqlite3_file *file) {
    (void)file;
    return 4096;
}

// Like SQLite's Unix layer: a torn write leaves the adjacent bytes unchanged.
static int disk_device_characteristics(sqlite3_file *file) {
    (void)file;
    return SQLITE_IOCAP_POWERSAFE_OVERWRITE;
}

static const sqlite3_io_methods methods = {
    .iVersion = 2,
    .xClose = disk_close,
    .xRead = disk_read,
    .xWrite = disk_write,
    .xTruncate = disk_truncate,
    .xSync = disk_sync,
    .xFileSize = disk_file_size,
    .xLock = disk_lock,
    .xUnlock = disk_unlock,
    .xCheckReservedLock = disk_check_reserved_lock,
    .xFileControl = disk_file_control,
    .xSectorSize = disk_sector_size,
    .xDeviceCharacteristics = disk_device_characteristics,
    .xShmMap = disk_shm_map,
    .xShmLock = disk_shm_lock,
    .xShmBarrier = disk_shm_barrier,
    .xShmUnmap = disk_shm_unmap,
};

// MARK: Names

// Finds or creates the file of a name.
static int open_inode(struct wakegate_disk *disk, const char *name, struct handle *handle, int flags) {
    struct entry *entry = disk_make_entry(disk, name);
    if (!entry) return SQLITE_NOMEM;
    handle->entry = entry;
    if (entry->now) {
        if ((flags & SQLITE_OPEN_CREATE) && (flags & SQLITE_OPEN_EXCLUSIVE)) return SQLITE_CANTOPEN;
        entry->now->references++;
        handle->inode = entry->now;
        return SQLITE_OK;
    }
    if (!(flags & SQLITE_OPEN_CREATE)) {
        disk->last_errno = ENOENT;
        return SQLITE_CANTOPEN;
    }
    int fault;
    if (disk_meets_fault(disk, WAKEGATE_DISK_CREATE | WAKEGATE_DISK_GROW, "creation", entry, 0, 0, &fault)) {
        if (fault != WAKEGATE_DISK_POWER_LOSS) return SQLITE_CANTOPEN;
        entry->now = inode_make();
        disk_crash(disk, disk->plan.seed, false);
        return SQLITE_CANTOPEN;
    }
    entry->now = inode_make();
    if (!entry->now) return SQLITE_NOMEM;
    entry->now->references++;
    handle->inode = entry->now;
    // SQLite's Unix layer syncs the folder only for these files; the database's own name becomes durable with theirs.
    int kinds = SQLITE_OPEN_WAL | SQLITE_OPEN_MAIN_JOURNAL | SQLITE_OPEN_SUPER_JOURNAL;
    handle->syncs_folder = (flags & kinds) != 0;
    return SQLITE_OK;
}

static int disk_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags, int *flags_out) {
    struct wakegate_disk *disk = vfs->pAppData;
    struct handle *handle = (struct handle *)file;
    memset(handle, 0, sizeof *handle);
    pthread_mutex_lock(&disk->lock);
    handle->disk = disk;
    int code = SQLITE_OK;
    if (name) {
        code = open_inode(disk, name, handle, flags);
    } else {
        handle->is_temporary = true;
        handle->inode = inode_make();
        if (!handle->inode) code = SQLITE_NOMEM;
    }
    if (code == SQLITE_OK) {
        handle->epoch = disk->epoch;
        handle->is_read_only = (flags & SQLITE_OPEN_READONLY) != 0;
        handle->deletes_on_close = (flags & SQLITE_OPEN_DELETEONCLOSE) != 0;
        handle->base.pMethods = &methods;
        disk->references++;
        if (flags_out) *flags_out = flags;
    }
    pthread_mutex_unlock(&disk->lock);
    return code;
}

static int delete_now(struct wakegate_disk *disk, const char *name, int syncs_folder) {
    struct entry *entry = disk_find(disk, name);
    if (!entry || !entry->now) return SQLITE_IOERR_DELETE_NOENT;
    int fault;
    if (disk_meets_fault(disk, WAKEGATE_DISK_DELETE, "deletion", entry, 0, 0, &fault)) {
        if (fault == WAKEGATE_DISK_POWER_LOSS) {
            inode_release(entry->now);
            entry->now = NULL;
            disk_crash(disk, disk->plan.seed, false);
        }
        return SQLITE_IOERR_DELETE;
    }
    inode_release(entry->now);
    entry->now = NULL;
    if (syncs_folder) disk_sync_folder(disk);
    return SQLITE_OK;
}

static int disk_delete(sqlite3_vfs *vfs, const char *name, int syncs_folder) {
    struct wakegate_disk *disk = vfs->pAppData;
    pthread_mutex_lock(&disk->lock);
    int code = delete_now(disk, name, syncs_folder);
    pthread_mutex_unlock(&disk->lock);
    return code;
}

static int disk_access(sqlite3_vfs *vfs, const char *name, int flags, int *is_so) {
    struct wakegate_disk *disk = vfs->pAppData;
    pthread_mutex_lock(&disk->lock);
    struct entry *entry = disk_find(disk, name);
    // SQLite's Unix layer treats an empty file as missing.
    *is_so = entry && entry->now && (flags != SQLITE_ACCESS_EXISTS || entry->now->size > 0);
    pthread_mutex_unlock(&disk->lock);
    return SQLITE_OK;
}

static int disk_full_path(sqlite3_vfs *vfs, const char *name, int count, char *path) {
    (void)vfs;
    return sqlite3_snprintf(count, path, "%s", name) ? SQLITE_OK : SQLITE_CANTOPEN;
}

// MARK: The machine

static int disk_randomness(sqlite3_vfs *vfs, int count, char *bytes) {
    sqlite3_vfs *machine = ((struct wakegate_disk *)vfs->pAppData)->machine;
    return machine->xRandomness(machine, count, bytes);
}

// Time does not pass here: a waiting thread lets others run and tries again.
static int disk_sleep(sqlite3_vfs *vfs, int microseconds) {
    (void)vfs;
    sched_yield();
    return microseconds;
}

static int disk_current_time(sqlite3_vfs *vfs, sqlite3_int64 *time) {
    sqlite3_vfs *machine = ((struct wakegate_disk *)vfs->pAppData)->machine;
    return machine->xCurrentTimeInt64(machine, time);
}

static int disk_last_error(sqlite3_vfs *vfs, int count, char *text) {
    (void)count, (void)text;
    return ((struct wakegate_disk *)vfs->pAppData)->last_errno;
}

void vfs_fill(struct wakegate_disk *disk) {
    disk->vfs = (sqlite3_vfs){
        .iVersion = 2,
        .szOsFile = sizeof(struct handle),
        .mxPathname = 512,
        .zName = disk->name,
        .pAppData = disk,
        .xOpen = disk_open,
        .xDelete = disk_delete,
        .xAccess = disk_access,
        .xFullPathname = disk_full_path,
        .xRandomness = disk_randomness,
        .xSleep = disk_sleep,
        .xGetLastError = disk_last_error,
        .xCurrentTimeInt64 = disk_current_time,
    };
}
