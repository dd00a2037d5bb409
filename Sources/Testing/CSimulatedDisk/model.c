#include "model.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

uint64_t disk_random(uint64_t *state) {
    *state += 0x9E3779B97F4A7C15;
    uint64_t value = *state;
    value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9;
    value = (value ^ (value >> 27)) * 0x94D049BB133111EB;
    return value ^ (value >> 31);
}

// MARK: Names

struct entry *disk_find(struct wakegate_disk *disk, const char *name) {
    for (struct entry *entry = disk->entries; entry; entry = entry->next) {
        if (strcmp(entry->name, name) == 0) return entry;
    }
    return NULL;
}

struct entry *disk_make_entry(struct wakegate_disk *disk, const char *name) {
    struct entry *entry = disk_find(disk, name);
    if (entry) return entry;
    entry = calloc(1, sizeof *entry);
    if (!entry) return NULL;
    entry->name = strdup(name);
    if (!entry->name) {
        free(entry);
        return NULL;
    }
    entry->next = disk->entries;
    disk->entries = entry;
    return entry;
}

static void set_inode(struct inode **place, struct inode *inode) {
    if (inode) inode->references++;
    if (*place) inode_release(*place);
    *place = inode;
}

void disk_sync_folder(struct wakegate_disk *disk) {
    for (struct entry *entry = disk->entries; entry; entry = entry->next) set_inode(&entry->durable, entry->now);
}

// MARK: Files

struct inode *inode_make(void) {
    struct inode *inode = calloc(1, sizeof *inode);
    if (inode) inode->references = 1;
    return inode;
}

void inode_release(struct inode *inode) {
    if (--inode->references > 0) return;
    if (inode->memory) memory_release(inode->memory);
    free(inode->cached);
    free(inode->durable);
    free(inode->is_dirty);
    free(inode);
}

static bool reserve(struct inode *inode, size_t size) {
    if (size <= inode->capacity) return true;
    size_t capacity = inode->capacity ? inode->capacity : 64 * 1024;
    while (capacity < size) capacity *= 2;
    uint8_t *cached = calloc(1, capacity);
    uint8_t *durable = calloc(1, capacity);
    uint8_t *is_dirty = calloc(1, capacity / SECTOR_BYTES);
    if (!cached || !durable || !is_dirty) {
        free(cached);
        free(durable);
        free(is_dirty);
        return false;
    }
    if (inode->capacity) {
        memcpy(cached, inode->cached, inode->capacity);
        memcpy(durable, inode->durable, inode->capacity);
        memcpy(is_dirty, inode->is_dirty, inode->capacity / SECTOR_BYTES);
    }
    free(inode->cached);
    free(inode->durable);
    free(inode->is_dirty);
    inode->cached = cached;
    inode->durable = durable;
    inode->is_dirty = is_dirty;
    inode->capacity = capacity;
    return true;
}

static void mark_dirty(struct inode *inode, size_t from, size_t to) {
    if (from >= to) return;
    for (size_t sector = from / SECTOR_BYTES; sector <= (to - 1) / SECTOR_BYTES; sector++) inode->is_dirty[sector] = 1;
}

bool inode_write(struct inode *inode, size_t offset, const void *bytes, size_t count) {
    if (!reserve(inode, offset + count)) return false;
    memcpy(inode->cached + offset, bytes, count);
    mark_dirty(inode, offset, offset + count);
    if (offset + count > inode->size) inode->size = offset + count;
    return true;
}

void inode_truncate(struct inode *inode, size_t size) {
    if (size < inode->size) {
        memset(inode->cached + size, 0, inode->size - size);
        mark_dirty(inode, size, inode->size);
    } else if (!reserve(inode, size)) {
        return;
    }
    inode->size = size;
}

static void write_sector(struct inode *inode, size_t sector) {
    size_t start = sector * SECTOR_BYTES;
    memcpy(inode->durable + start, inode->cached + start, SECTOR_BYTES);
    inode->is_dirty[sector] = 0;
}

void inode_sync(struct inode *inode) {
    for (size_t sector = 0; sector < inode->capacity / SECTOR_BYTES; sector++) {
        if (inode->is_dirty[sector]) write_sector(inode, sector);
    }
    inode->durable_size = inode->size;
}

void inode_write_early(struct wakegate_disk *disk, struct inode *inode, size_t offset, size_t count) {
    if (!disk->is_random || !count || disk_random(&disk->random) % 4) return;
    size_t first = offset / SECTOR_BYTES;
    size_t sectors = (offset + count - 1) / SECTOR_BYTES - first + 1;
    for (int tries = 0; tries < 8; tries++) {
        size_t sector = first + disk_random(&disk->random) % sectors;
        if (inode->is_dirty[sector]) write_sector(inode, sector);
    }
}

void inode_fail_sync(struct wakegate_disk *disk, struct inode *inode) {
    bool writes_some = disk->is_random && disk_random(&disk->random) % 2;
    bool forgets = disk->is_random && disk_random(&disk->random) % 4 == 0;
    for (size_t sector = 0; sector < inode->capacity / SECTOR_BYTES; sector++) {
        if (!inode->is_dirty[sector]) continue;
        if (sector * SECTOR_BYTES < inode->size && writes_some && disk_random(&disk->random) % 2) {
            write_sector(inode, sector);
            continue;
        }
        size_t start = sector * SECTOR_BYTES;
        // The page was dropped from the cache and is read from the platter again.
        if (forgets && start + SECTOR_BYTES <= inode->size) {
            memcpy(inode->cached + start, inode->durable + start, SECTOR_BYTES);
        }
        inode->is_dirty[sector] = 0;
    }
    if (writes_some && disk_random(&disk->random) % 2) inode->durable_size = inode->size;
}

// MARK: Loss of power

static size_t size_after_crash(const struct inode *inode, uint64_t *random) {
    size_t small = inode->size < inode->durable_size ? inode->size : inode->durable_size;
    size_t large = inode->size < inode->durable_size ? inode->durable_size : inode->size;
    switch (disk_random(random) % 3) {
    case 0: return inode->durable_size;
    case 1: return inode->size;
    // A truncation happens completely or not at all; a file that grew may have grown partly.
    default: return inode->size < inode->durable_size ? inode->size : small + disk_random(random) % (large - small + 1);
    }
}

// `survival`: how many of 8 unsynced sectors reach the platter.
static void lose_power(struct inode *inode, uint64_t *random, unsigned survival, bool tears) {
    size_t size = random ? size_after_crash(inode, random) : inode->durable_size;
    for (size_t sector = 0; sector < inode->capacity / SECTOR_BYTES; sector++) {
        if (!inode->is_dirty[sector]) continue;
        inode->is_dirty[sector] = 0;
        // Beyond the end are only the zeros of a truncation. If the truncation is lost, the former bytes are still there.
        if (sector * SECTOR_BYTES >= inode->size) continue;
        if (!random || disk_random(random) % 8 >= survival) continue;
        size_t start = 0;
        size_t end = SECTOR_BYTES;
        if (tears && disk_random(random) % 2) {
            size_t cut = disk_random(random) % (SECTOR_BYTES + 1);
            if (disk_random(random) % 2) end = cut; else start = cut;
        }
        size_t base = sector * SECTOR_BYTES;
        memcpy(inode->durable + base + start, inode->cached + base + start, end - start);
    }
    if (inode->capacity > size) memset(inode->durable + size, 0, inode->capacity - size);
    if (inode->capacity) memcpy(inode->cached, inode->durable, inode->capacity);
    inode->size = inode->durable_size = size;
}

static void drop_locks(struct inode *inode) {
    inode->shared_locks = 0;
    inode->writer = NULL;
    inode->is_pending = false;
    // Dead handles keep the memory until they are closed; the next one to open the file gets new memory.
    if (inode->memory) memory_release(inode->memory);
    inode->memory = NULL;
}

void disk_crash(struct wakegate_disk *disk, uint64_t seed, bool keeps_cache) {
    disk->epoch++;
    uint64_t random = seed;
    uint64_t *source = seed ? &random : NULL;
    unsigned survival = source ? (unsigned)(disk_random(source) % 9) : 0;
    bool tears = source && disk_random(source) % 2;
    for (struct entry *entry = disk->entries; entry; entry = entry->next) {
        if (!keeps_cache && entry->now != entry->durable) {
            if (source && disk_random(source) % 2) {
                set_inode(&entry->durable, entry->now);
            } else {
                set_inode(&entry->now, entry->durable);
            }
        }
        if (!entry->now) continue;
        drop_locks(entry->now);
        if (!keeps_cache) lose_power(entry->now, source, survival, tears);
    }
}

// MARK: Faults

static void describe(
    struct wakegate_disk *disk, const char *verb, const struct entry *entry, int64_t offset, int64_t count, int fault
) {
    static const char *const faults[] = {"no space", "input/output error", "loss of power", "kill"};
    snprintf(
        disk->first_fault, sizeof disk->first_fault, "%s at operation %lld: %s of %lld bytes at %lld of %s", faults[fault],
        (long long)disk->operations, verb, (long long)count, (long long)offset, entry ? entry->name : "/"
    );
}

bool disk_meets_fault(
    struct wakegate_disk *disk, unsigned kinds, const char *verb, const struct entry *entry, int64_t offset, int64_t count,
    int *fault
) {
    if (!(disk->plan.kinds & kinds)) return false;
    bool is_met = disk->plan.nth >= 0
        && (disk->operations == disk->plan.nth || (disk->plan.lasts && disk->operations > disk->plan.nth));
    if (is_met) {
        *fault = disk->plan.fault;
        if (disk->faults++ == 0) describe(disk, verb, entry, offset, count, *fault);
        disk->last_errno = *fault == WAKEGATE_DISK_NO_SPACE ? ENOSPC : EIO;
        if (*fault == WAKEGATE_DISK_KILL) disk_crash(disk, 0, true);
    }
    disk->operations++;
    return is_met;
}

// MARK: What tests call

wakegate_disk *wakegate_disk_make(const char *vfs_name, uint64_t seed) {
    struct wakegate_disk *disk = calloc(1, sizeof *disk);
    if (!disk) return NULL;
    disk->name = strdup(vfs_name);
    disk->machine = sqlite3_vfs_find(NULL);
    disk->references = 1;
    disk->random = seed;
    disk->is_random = seed != 0;
    disk->plan.nth = -1;
    pthread_mutex_init(&disk->lock, NULL);
    vfs_fill(disk);
    if (!disk->name || !disk->machine || sqlite3_vfs_find(vfs_name) || sqlite3_vfs_register(&disk->vfs, 0) != SQLITE_OK) {
        pthread_mutex_destroy(&disk->lock);
        free(disk->name);
        free(disk);
        return NULL;
    }
    return disk;
}

void disk_release(struct wakegate_disk *disk) {
    bool is_last = --disk->references == 0;
    pthread_mutex_unlock(&disk->lock);
    if (!is_last) return;
    for (struct entry *entry = disk->entries; entry;) {
        struct entry *next = entry->next;
        set_inode(&entry->now, NULL);
        set_inode(&entry->durable, NULL);
        free(entry->name);
        free(entry);
        entry = next;
    }
    pthread_mutex_destroy(&disk->lock);
    free(disk->name);
    free(disk);
}

void wakegate_disk_free(wakegate_disk *disk) {
    sqlite3_vfs_unregister(&disk->vfs);
    pthread_mutex_lock(&disk->lock);
    disk_release(disk);
}

void wakegate_disk_plan(wakegate_disk *disk, int64_t nth, unsigned kinds, int fault, bool lasts, uint64_t seed) {
    pthread_mutex_lock(&disk->lock);
    disk->plan.nth = nth;
    disk->plan.kinds = kinds;
    disk->plan.fault = fault;
    disk->plan.lasts = lasts;
    disk->plan.seed = seed;
    disk->operations = 0;
    disk->faults = 0;
    disk->first_fault[0] = 0;
    pthread_mutex_unlock(&disk->lock);
}

int64_t wakegate_disk_operations(wakegate_disk *disk) {
    pthread_mutex_lock(&disk->lock);
    int64_t operations = disk->operations;
    pthread_mutex_unlock(&disk->lock);
    return operations;
}

int64_t wakegate_disk_faults(wakegate_disk *disk) {
    pthread_mutex_lock(&disk->lock);
    int64_t faults = disk->faults;
    pthread_mutex_unlock(&disk->lock);
    return faults;
}

void wakegate_disk_describe_fault(wakegate_disk *disk, char *text, size_t count) {
    pthread_mutex_lock(&disk->lock);
    snprintf(text, count, "%s", disk->first_fault);
    pthread_mutex_unlock(&disk->lock);
}

bool wakegate_disk_sync_folder(wakegate_disk *disk) {
    pthread_mutex_lock(&disk->lock);
    int fault;
    bool fails = disk_meets_fault(disk, WAKEGATE_DISK_SYNC, "sync of the folder", NULL, 0, 0, &fault);
    if (!fails) disk_sync_folder(disk);
    if (fails && fault == WAKEGATE_DISK_POWER_LOSS) disk_crash(disk, disk->plan.seed, false);
    pthread_mutex_unlock(&disk->lock);
    return !fails;
}

void wakegate_disk_crash(wakegate_disk *disk, uint64_t seed, bool keeps_cache) {
    pthread_mutex_lock(&disk->lock);
    disk_crash(disk, seed, keeps_cache);
    pthread_mutex_unlock(&disk->lock);
}

int64_t wakegate_disk_file_size(wakegate_disk *disk, const char *path) {
    pthread_mutex_lock(&disk->lock);
    struct entry *entry = disk_find(disk, path);
    int64_t size = entry && entry->now ? (int64_t)entry->now->size : -1;
    pthread_mutex_unlock(&disk->lock);
    return size;
}

// Returns the inode if it has these bytes.
static struct inode *holder(struct wakegate_disk *disk, const char *path, int64_t offset, size_t count) {
    struct entry *entry = disk_find(disk, path);
    bool has = entry && entry->now && offset >= 0 && (size_t)offset + count <= entry->now->size;
    return has ? entry->now : NULL;
}

bool wakegate_disk_peek(wakegate_disk *disk, const char *path, int64_t offset, void *bytes, size_t count) {
    pthread_mutex_lock(&disk->lock);
    struct inode *inode = holder(disk, path, offset, count);
    if (inode) memcpy(bytes, inode->cached + offset, count);
    pthread_mutex_unlock(&disk->lock);
    return inode != NULL;
}

bool wakegate_disk_poke(wakegate_disk *disk, const char *path, int64_t offset, const void *bytes, size_t count) {
    pthread_mutex_lock(&disk->lock);
    struct inode *inode = holder(disk, path, offset, count);
    if (inode) {
        memcpy(inode->cached + offset, bytes, count);
        memcpy(inode->durable + offset, bytes, count);
    }
    pthread_mutex_unlock(&disk->lock);
    return inode != NULL;
}
