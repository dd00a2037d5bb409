#ifndef WAKEGATE_CFILES_SHIM_H
#define WAKEGATE_CFILES_SHIM_H
// The system's headers are not included: their types would belong to this module instead of Glibc's.

// Renames a file if the new name does not exist; otherwise fails with EEXIST. renameat2 is a GNU extension that Glibc's
// module hides.
static inline int wakegate_rename_to_unused(const char *path, const char *other) {
    extern int renameat2(int, const char *, int, const char *, unsigned);
    const int current_folder = -100;
    const unsigned no_replace = 1;
    return renameat2(current_folder, path, current_folder, other, no_replace);
}

#endif
